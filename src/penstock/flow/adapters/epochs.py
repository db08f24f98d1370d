"""A flow for a consumer that begins epochs as it likes, leaves them early, and saves its state between two batches.

begin() ─► batch, reached ─► started ahead, copied, … ─► delivered(reached) ─► the consumer
                                                                └─► state(): what was delivered, not what was taken
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, NoReturn

from penstock.errors import RecipeError
from penstock.flow.state import Reached, checked_state
from penstock.flow.streams.stream_running import UnknownLength

if TYPE_CHECKING:
    from penstock.flow.flow import Batch, Flow


class Epochs:
    """Which epoch comes next, and how far the consumer is."""

    def __init__(self, flow: Flow) -> None:
        self._running = flow.running
        if not self._running.has_batches:
            raise RecipeError("the plan has no batch: add .batch(size).")
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
            raise RecipeError(f"set_epoch({number!r}): expected a whole number from 0.")
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
    raise RecipeError(
        f"batch {position} was asked for out of turn, and a stream has only a next one. Pack the samples first "
        "(penstock.pack takes any Source), and use the pack."
    )
