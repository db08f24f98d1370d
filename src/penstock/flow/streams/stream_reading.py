"""The thread that reads a stream ahead, within the budget; or, without workers, reading in the calling thread."""

from __future__ import annotations

import threading
import warnings
from collections import deque
from collections.abc import Callable, Generator
from contextlib import closing
from typing import Protocol

from penstock.errors import RecipeError
from penstock.flow.budget import Allowance
from penstock.flow.streams.feeding import Group

PATIENCE_SECONDS = 10.0  # for a generator that waits for something else, when its epoch is left


class Reading(Protocol):
    """Where the groups of an epoch come from."""

    def next(self) -> Group | None:
        """The next group, waited for; None at the end. What reading raised is raised here."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether `next` would not wait."""
        ...

    def give_back(self, amount: int) -> None:
        """Samples of so many bytes are not needed any more."""
        ...

    def close(self) -> None: ...


class HereReading:
    """Groups are read when they are asked for."""

    is_ready = False

    def __init__(self, groups: Generator[Group, None, None]) -> None:
        self._groups = groups

    def next(self) -> Group | None:
        return next(self._groups, None)

    def give_back(self, amount: int) -> None:
        """Nothing is held ahead."""

    def close(self) -> None:
        self._groups.close()


class ThreadReading:
    """One thread reads ahead: so many groups as `ahead()` says and the budget has room for."""

    def __init__(self, groups: Generator[Group, None, None], allowance: Allowance, ahead: Callable[[], int]) -> None:
        self._groups, self._allowance, self._ahead = groups, allowance, ahead
        self._ready: deque[Group] = deque()
        self._held = 0  # bytes taken of the allowance
        self._error: BaseException | None = None
        self._has_ended = False
        self.is_closing = False
        self._changed = threading.Condition()
        # A daemon: a program that ends must not wait for a generator that waits for something else.
        self._thread = threading.Thread(target=self._read, name="penstock-reader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def next(self) -> Group | None:
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._has_ended)
            if self._ready:
                group = self._ready.popleft()
                self._changed.notify_all()
                return group
        if self._error is not None:
            raise self._error
        return None

    @property
    def is_ready(self) -> bool:
        # An error is no hurry: the batches before it are delivered first.
        with self._changed:
            return bool(self._ready) or (self._has_ended and self._error is None)

    def give_back(self, amount: int) -> None:
        with self._changed:
            self._allowance.give(amount)
            self._held -= amount
            self._changed.notify_all()

    def close(self) -> None:
        """End the thread, and with it the generators; called by the consumer."""
        with self._changed:
            self.is_closing = True
            self._changed.notify_all()
        self._thread.join(PATIENCE_SECONDS)
        if self._thread.is_alive():
            warnings.warn(
                f"the stream was left, and its generator has not come back for {PATIENCE_SECONDS:g} seconds: its "
                "thread ends when it does. Give what it waits for (a socket, a queue) a timeout.",
                RuntimeWarning,
                stacklevel=2,
            )
        self._allowance.give(self._held)
        self._held = 0
        self._ready.clear()

    # In the thread

    def _read(self) -> None:
        try:
            with closing(self._groups) as groups:
                for group in groups:
                    if not self._put(group):
                        break
        except BaseException as error:  # noqa: BLE001 - it is not swallowed: the consumer raises it
            self._error = error
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def _put(self, group: Group) -> bool:
        """Hand a group over when there is room; False when nobody wants it any more."""
        size = group.bytes
        with self._changed:
            self._changed.wait_for(lambda: self.is_closing or len(self._ready) < self._ahead())
            while not self.is_closing and not self._allowance.take(size):
                if not self._held:
                    raise RecipeError(
                        f"the samples of one batch take {size / 2**20:,.1f} MB, and the memory budget has no room for "
                        'them. Use smaller batches, or give this flow more: Flow(…, memory="4 GB").'
                    )
                self._changed.wait()
            if self.is_closing:
                return False
            self._held += size
            self._ready.append(group)
            self._changed.notify_all()
        return True
