"""Batches by number, for a consumer that asks for each number once in an order of its own.

    num_batches is read ─► every index once, permuted by Python's random ─► … ─► num_batches is read ─► …
                           └────── a pass: the n-th question gets batch n, whatever number it has ──────┘

Outside of a pass a number is what it says. A pass that gave all batches between `on_epoch_begin` and its end is an
epoch; one that was left early (a look at the first batch, an interrupted `fit`) is gone through again.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.errors import RecipeError
from penstock.flow.adapters.epochs import Epochs, refuse_number
from penstock.flow.state import Reached
from penstock.flow.streams.stream_running import UnknownLength

if TYPE_CHECKING:
    from penstock.flow.flow import Batch, Flow


class Passes:
    """Which batch of which epoch a question means."""

    def __init__(self, flow: Flow) -> None:
        self._epochs = Epochs(flow)
        self._running = flow.running
        self._lock = threading.Lock()
        self._epoch = self._running.reached.epoch
        self._is_inside = False  # between on_epoch_begin and on_epoch_end
        self._epoch_is_new = False  # on_epoch_begin was called, and nothing asked since
        self._may_begin = False  # num_batches was read, where a pass may follow
        self._position: int | None = None  # of a pass
        self._counts = False  # whether the pass is an epoch when it is complete
        self._batches: Iterator[Batch] | None = None
        self._next: tuple[int, int] | None = None  # epoch and number of what _batches gives next
        self._following: Iterator[Batch] | None = None

    def count(self) -> int:
        return self._epochs.count()

    def known_count(self) -> int | None:
        """Batches in an epoch; None without end, or where nobody knows."""
        try:
            return self.count()
        except UnknownLength:
            return None

    # What is asked

    def may_begin(self) -> None:
        """The number of batches was read: a pass begins with the next question, if an epoch does."""
        with self._lock:
            if self._position is None or not self._is_inside or self._epoch_is_new:
                self._may_begin = True

    def epoch_begins(self) -> None:
        with self._lock:
            self._is_inside = self._epoch_is_new = True

    def epoch_ends(self) -> None:
        with self._lock:
            self._is_inside = False
            self._close_complete()

    def set_epoch(self, number: int) -> None:
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise RecipeError(f"set_epoch({number!r}): expected a whole number from 0.")
        with self._lock:
            self._epoch, self._position, self._following = number, None, None

    def batch(self, index: int) -> Batch:
        """The next batch of the pass; outside of one, the batch with this number."""
        with self._lock:
            count = self.known_count()
            if count is None:
                return self._at(0, index)
            if self._may_begin:
                self._close_complete()
                self._position, self._counts, self._may_begin = 0, self._is_inside, False
            self._epoch_is_new = False
            if self._position is None or self._position == count:
                return self._at(self._epoch, _checked(index, count))
            self._position += 1
            return self._at(self._epoch, self._position - 1)

    def _close_complete(self) -> None:
        """After a complete pass the next epoch is due."""
        if self._position is not None and self._position == self.known_count():
            self._epoch += self._counts
            self._position = None

    # What is given

    def _at(self, epoch: int, number: int) -> Batch:
        """A batch by its number; one after another costs nothing extra."""
        if self._batches is None or self._next != (epoch, number):
            self._batches = self._from(epoch, number)
        batch = next(self._batches, None)
        if batch is None:  # a stream ended: its next pass goes on
            self._epoch += 1
            self._batches = self._from(self._epoch, 0)
            batch = next(self._batches)
        self._next = epoch, number + 1
        return batch

    def _from(self, epoch: int, number: int) -> Iterator[Batch]:
        if self._epochs.can_resume:
            self._epochs.restore(self._running.state(Reached(epoch, number, 0)))
        elif number:
            refuse_number(number)
        else:
            self._epochs.set_epoch(self._epoch)
        return (batch for batch, _ in self._epochs.begin())

    def following(self) -> Batch:
        """The next batch, epoch after epoch."""
        with self._lock:
            if self._following is None:
                self._following = self._without_end()
            return next(self._following)

    def _without_end(self) -> Iterator[Batch]:
        count = self.known_count()
        if count is None:
            for number in itertools.count():
                yield self._at(0, number)
        while True:
            for number in range(count or 0):
                yield self._at(self._epoch, number)
            self._epoch += 1


def _checked(index: int, count: int) -> int:
    if not -count <= index < count:
        raise IndexError(f"batch {index} of {count}")
    return index % count
