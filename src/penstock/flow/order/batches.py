"""Which batches an epoch delivers, in order: those that are dealt, and what take, skip and repeat make of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from penstock.flow.order.dealing import Deal
from penstock.flow.steps import Repeat, Skip, Step, Take


class Dealt(NamedTuple):
    """One batch: which pass over the samples it belongs to, and the positions of this rank in it."""

    epoch: int
    number: int
    start: int
    stop: int


class Schedule(Protocol):
    """Which batches come next: of a source known beforehand, of a stream as it is read."""

    @property
    def deal(self) -> Deal: ...
    @property
    def count(self) -> int | None:
        """How many an epoch delivers; None without end, or where nobody knows."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether the next batch can be handed out without waiting."""
        ...

    def numbers(self, first: int) -> Iterator[int]:
        """The numbers of the batches from `first` on."""
        ...

    def at(self, epoch: int, number: int) -> Dealt:
        """What a number stands for."""
        ...


@dataclass(frozen=True)
class Batches:
    """The batches of an epoch of one rank; `steps` are those on whole batches."""

    deal: Deal
    steps: tuple[Step, ...] = ()

    @property
    def count(self) -> int | None:
        """How many an epoch delivers; None without end."""
        return counts_after(self.deal.count, self.steps)[-1]

    @property
    def is_endless(self) -> bool:
        return self.count is None

    @property
    def is_ready(self) -> bool:
        return True

    def numbers(self, first: int) -> Iterator[int]:
        return itertools.count(first) if self.count is None else iter(range(first, self.count))

    def at(self, epoch: int, number: int) -> Dealt:
        """Batch `number` of an epoch."""
        counts = counts_after(self.deal.count, self.steps)
        for step, before in zip(reversed(self.steps), reversed(counts[:-1]), strict=True):
            if isinstance(step, Skip):
                number += step.count
            elif isinstance(step, Repeat) and before:
                epoch, number = epoch * (step.times or 1) + number // before, number % before
        return Dealt(epoch, number, *self.deal.span(number))

    @property
    def of_one_rank(self) -> Batches:
        """The same batches where one rank gets all; nothing is left out because ranks are many."""
        return replace(self, deal=replace(self.deal, rank=0, world_size=1))

    def before(self, dealt: Dealt) -> int:
        """How many batches of an epoch come before one, which may be left out here."""
        epoch, number = dealt.epoch, dealt.number
        counts = counts_after(self.deal.count, self.steps)
        number = number if counts[0] is None else min(number, counts[0])
        for step, count in zip(self.steps, counts[:-1], strict=True):
            if isinstance(step, Skip):
                number = max(number - step.count, 0)
            elif isinstance(step, Take):
                number = min(number, step.count)
            elif isinstance(step, Repeat) and count is not None:
                epoch, passed = (0, epoch) if step.times is None else divmod(epoch, step.times)
                number += passed * count
        return number


def counts_after(count: int | None, steps: Sequence[Step]) -> list[int | None]:
    """The number of batches before the first step and after each."""
    counts = [count]
    for step in steps:
        if isinstance(step, Take):
            count = step.count if count is None else min(count, step.count)
        elif isinstance(step, Skip):
            count = None if count is None else max(count - step.count, 0)
        elif isinstance(step, Repeat):
            count = None if count is None or step.times is None else count * step.times
        counts.append(count)
    return counts
