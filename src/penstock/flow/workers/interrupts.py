"""Ctrl-C while a flow is being ended: held back until that is done, and never lost.

A flow is often ended by the garbage collector, which prints what is raised in its calls and drops it. So Ctrl-C is
noted here, and sent again as soon as the calls that were under way have returned.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

OWN = __name__.split(".")[0]
LOOK_SECONDS = 0.001


@contextmanager
def interrupts_kept() -> Iterator[None]:
    """Hold Ctrl-C back while something is ended that must not stay half ended."""
    handler = _handler()
    if handler is None:
        yield
        return
    noted: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: noted.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if noted:
            frames = _own_frames(sys._getframe())
            threading.Thread(target=_send_after, args=(frames,), name="penstock-interrupt", daemon=True).start()


def _handler() -> Any:
    """What Ctrl-C does now; None where it cannot reach this thread, or ends the program without Python."""
    if threading.current_thread() is not threading.main_thread():
        return None
    handler = signal.getsignal(signal.SIGINT)
    return handler if callable(handler) else None


def _own_frames(frame: FrameType | None) -> set[int]:
    """The calls of ours that have to return first, up to the program of the user."""
    found = set()
    is_entered = False
    while frame is not None:
        is_own = frame.f_globals.get("__name__", "").split(".")[0] in (OWN, "contextlib", "weakref")
        if is_entered and not is_own:
            break
        is_entered = is_entered or is_own
        found.add(id(frame))
        frame = frame.f_back
    return found


def _send_after(frames: set[int]) -> None:
    main = threading.main_thread()
    while main.is_alive() and not frames.isdisjoint(_stack(main)):
        time.sleep(LOOK_SECONDS)
    if main.is_alive() and main.ident is not None:
        signal.pthread_kill(main.ident, signal.SIGINT)


def _stack(thread: threading.Thread) -> Iterator[int]:
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        yield id(frame)
        frame = frame.f_back
