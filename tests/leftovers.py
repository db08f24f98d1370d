"""What a process holds: to see that nothing is left of a flow when it is gone."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from multiprocessing import resource_tracker
from pathlib import Path
from typing import NamedTuple

import psutil

DEADLINE_SECONDS = 120.0


class Held(NamedTuple):
    processes: frozenset[int]
    threads: frozenset[str]
    descriptors: int
    shared: frozenset[str]


def held() -> Held:
    """Child processes (also those that nobody waited for), our threads, open descriptors, named shared memory.

    Python's own tracker of shared memory does not count: once something has started it, it stays as long as Python.
    """
    shared = Path("/dev/shm")
    tracker = getattr(resource_tracker._resource_tracker, "_pid", None)
    return Held(
        frozenset(child.pid for child in psutil.Process().children(recursive=True) if child.pid != tracker),
        frozenset(thread.name for thread in threading.enumerate() if thread.name.startswith("penstock")),
        sum(1 for _ in Path("/proc/self/fd").iterdir()),
        frozenset(path.name for path in shared.iterdir()) if shared.is_dir() else frozenset(),
    )


def until(is_true: Callable[[], bool], what: str) -> None:
    """Wait for a condition; fails when it does not come true in a long time."""
    end = time.monotonic() + DEADLINE_SECONDS
    while not is_true():
        assert time.monotonic() < end, f"waited {DEADLINE_SECONDS} s in vain until {what}"
        time.sleep(0.005)


def assert_nothing_left(before: Held) -> None:
    gc.collect()
    until(lambda: _more(before, held()) == [], "nothing was left")


def _more(before: Held, after: Held) -> list[str]:
    found = [f"process {pid}" for pid in after.processes - before.processes]
    found += [f"thread {name}" for name in after.threads - before.threads]
    found += [f"shared memory {name}" for name in after.shared - before.shared if name.startswith(("penstock", "psm_"))]
    if after.descriptors > before.descriptors:
        found.append(f"{after.descriptors - before.descriptors} descriptors")
    return found


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody waited for has ended too."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
