"""Which batches an epoch delivers: global batches first, then the positions of each rank."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from penstock.errors import OptionError
from penstock.flow.steps import Repeat, Skip, Step, Take
from penstock.wording import counted

# Global batches first, then ranks: which positions of an epoch each rank gets in each step.


@dataclass(frozen=True)
class Deal:
    """How an epoch of `length` positions (None: without end) is cut into global batches, and these among ranks.

    All ranks take the same number of steps. A short last batch is dealt as evenly as it goes; when it has fewer samples
    than ranks it is left out, unless `keep_all` (for evaluation) says that nothing is: then some ranks get an empty
    share. `batch_size` counts the samples of all ranks together.
    """

    length: int | None
    batch_size: int
    drop_last: bool = False
    rank: int = 0
    world_size: int = 1
    keep_all: bool = False

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise OptionError(f"batch({self.batch_size}): expected 1 sample or more.")
        if not 0 <= self.rank < self.world_size:
            raise OptionError(
                f"shard(rank={self.rank}, world_size={self.world_size}): expected 0 <= rank < world_size."
            )
        if self.batch_size < self.world_size and not self.keep_all:
            raise OptionError(
                f"A global batch of {counted(self.batch_size, 'sample')} is too small for {self.world_size} ranks. "
                f"Use batch({self.world_size}) or more: the batch size counts the samples of all ranks together."
            )
        if self.drop_last and self.keep_all:
            raise OptionError("drop_last=True leaves samples out, and evaluation must not. Use drop_last=False.")

    @property
    def count(self) -> int | None:
        """Steps in an epoch, the same on all ranks."""
        if self.length is None:
            return None
        full, short = divmod(self.length, self.batch_size)
        return full + (1 if self._deals_short(short) else 0)

    @property
    def most_rows(self) -> int:
        """Samples that this rank gets of a full batch, or one more."""
        return -(-self.batch_size // self.world_size)

    @property
    def left_out(self) -> int:
        """Samples at the end of an epoch that no rank gets."""
        short = (self.length or 0) % self.batch_size
        return 0 if self._deals_short(short) else short

    def span(self, batch_number: int) -> tuple[int, int]:
        """The positions, from and up to, of this rank's share of a global batch."""
        start = batch_number * self.batch_size
        size = self.batch_size if self.length is None else min(self.batch_size, self.length - start)
        share = (self.rank * size // self.world_size, (self.rank + 1) * size // self.world_size)
        return start + share[0], start + share[1]

    def _deals_short(self, size: int) -> bool:
        """Whether a last batch of this size, less than a full one, is dealt."""
        if self.keep_all or size == 0:
            return size > 0
        return not self.drop_last and size >= self.world_size


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
