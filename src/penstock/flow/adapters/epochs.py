"""A flow for a consumer that begins epochs as it likes, leaves them early, and saves its state between batches.

begin() ─► batch, reached ─► started ahead, copied, … ─► delivered(reached) ─► the consumer
                                                                └─► state(): what was delivered, not what was taken
"""

from __future__ import annotations

import importlib
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from penstock.errors import MissingExtra, OptionError
from penstock.flow.state import Reached, checked_state
from penstock.flow.streams.stream_running import UnknownLength

if TYPE_CHECKING:
    from penstock.flow.flow import Batch, Flow


class Epochs:
    """Which epoch comes next, and how far the consumer is."""

    def __init__(self, flow: Flow) -> None:
        self._running = flow.running
        if not self._running.has_batches:
            raise OptionError("the plan has no batch: add .batch(size).")
        self._asked: int | None = None  # by set_epoch, for the next epoch that begins
        self._last: Reached | None = None  # behind the last batch that was delivered
        self._open: Iterator[Batch] | None = None  # of a flow without end
        self._delivered = 0
        self._held_back: int | None = None

    @property
    def can_resume(self) -> bool:
        return self._running.has_random_access

    @property
    def is_endless(self) -> bool:
        return self._running.is_endless

    def count(self) -> int:
        """Batches in an epoch; a TypeError where there is no number, as `len` needs it."""
        if self.is_endless:
            raise UnknownLength("this flow has no end, so it has no length: repeat() goes on for ever.")
        return self._running.count()

    def first(self) -> Batch | None:
        """The first batch of the next epoch, which begins with it all the same."""
        reached = self._running.reached
        with closing(self._running.epoch(None)) as batches:  # type: ignore[type-var]
            first = next(batches, None)
        if self.can_resume:
            self._running.restore(checked_state(self._running.state(reached)), allow_other=False)
        else:
            self._asked = reached.epoch
        return first

    def shape(self, field: str, shape: tuple[int, ...]) -> tuple[int | None, ...]:
        """What the shape of a field has in common with that of all other batches."""
        sizes = shape[1:] if self._running.is_exact(field) else (None,) * len(shape[1:])
        return (self._running.row_count, *sizes) if shape else ()

    def begin(self) -> Iterator[tuple[Batch, Reached]]:
        """The batches of the next epoch; which one that is, is decided when the first is asked for.

        A flow without end has one epoch: it goes on where it was left.
        """
        return self._going_on() if self.is_endless else self._epoch()

    def _epoch(self) -> Iterator[tuple[Batch, Reached]]:
        asked, self._asked = self._asked, None
        with closing(self._running.epoch(asked)) as batches:  # type: ignore[type-var]
            for batch in batches:
                reached = self._running.reached
                is_last = reached.batch == 0
                if is_last:  # consumers that know the length never ask for more: end the epoch now
                    batches.close()  # type: ignore[attr-defined]
                yield batch, reached
                del batch
                if is_last:
                    return

    def _going_on(self) -> Iterator[tuple[Batch, Reached]]:
        if self._open is None:
            self._open = self._running.epoch(None)
        while True:
            try:
                batch = next(self._open)
            except BaseException:
                self._open = None
                raise
            yield batch, self._running.reached
            del batch

    def delivered(self, reached: Reached) -> None:
        """The consumer gets the batch that this belongs to."""
        self._last = reached
        self._delivered += 1

    def set_epoch(self, number: int) -> None:
        """The next epoch that begins has this number, unless a state inside of it was just restored."""
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise OptionError(f"set_epoch({number!r}): expected a whole number from 0.")
        if self._held_back is None:
            # Trainers call this before they train. What was taken earlier waits in their hands, to see an end in time.
            self._held_back = self._delivered
        is_there = self._running.goes_on and number == self._running.reached.epoch
        self._asked = None if is_there or self.is_endless else number

    def state(self) -> dict[str, Any]:
        """Where the consumer is."""
        if self._asked is not None:
            return self._running.state(Reached(self._asked, 0, 0))
        state = self._running.state(self._last)
        if self.is_endless:
            state["batch"] = max(state["batch"] - (self._held_back or 0), 0)
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """The next epoch goes on where the state was taken."""
        self._running.restore(checked_state(state), allow_other=False)
        self._asked, self._last, self._open = None, None, None
        self._delivered, self._held_back = 0, None


def refuse_number(position: int) -> NoReturn:
    """A stream was asked for a batch by its number."""
    raise OptionError(
        f"batch {position} was asked for out of turn, and a stream has only a next one. Pack the samples first "
        "(penstock.pack takes any Source), and use the pack."
    )


# Batches by number, for a consumer that asks for each number once in an order of its own.
#
#     num_batches is read ─► every index once, permuted by Python's random ─► … ─► num_batches is read ─► …
#                            └────── a pass: the n-th question gets batch n, whatever number it has ──────┘
#
# Outside of a pass a number is what it says. A pass that gave all batches between `on_epoch_begin` and its end is an
# epoch; one that was left early (a look at the first batch, an interrupted `fit`) is gone through again.


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
            raise OptionError(f"set_epoch({number!r}): expected a whole number from 0.")
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


# Work on what comes next that runs by itself once it is started, such as copies to a device.


Item = TypeVar("Item")
Started = TypeVar("Started")


def started_ahead(items: Iterator[Item], start: Callable[[Item], Started], count: int) -> Iterator[Started]:
    """What `start` gave for each item, in order; it was called `count` items before the item is handed on."""
    waiting: deque[Started] = deque()
    for item in items:
        waiting.append(start(item))
        del item  # what is handed on must not be kept here
        if len(waiting) > count:
            yield waiting.popleft()
    while waiting:
        yield waiting.popleft()


# Frameworks that only their own users install.


def framework(module: str, purpose: str) -> Any:
    """Import a framework, or say the exact pip line that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing == module:
            raise MissingExtra(f"{purpose} needs {module}. Run: pip install {module}") from error
        if module == "keras" and missing in ("tensorflow", "jax", "torch"):
            raise MissingExtra(
                f"Keras is set to run on {missing}, which is not installed. Run: pip install {missing}, or set the "
                "environment variable KERAS_BACKEND to torch, jax or tensorflow before Keras is imported."
            ) from error
        raise
