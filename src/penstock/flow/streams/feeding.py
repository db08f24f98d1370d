"""The samples of a stream on their way to batches, one after another, in one thread.

    parts in rotation ──► take, skip, repeat, shuffle, filter as written ──► groups: the samples of one batch

Maps are left to the workers, but for those before a filter: what it looks at must be made first.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from penstock.errors import HopError, OptionError, PackError
from penstock.flow.budget import Allowance
from penstock.flow.caching.filtering import wanted
from penstock.flow.making.chains import Chain, Link, run_chain
from penstock.flow.order.batches import Deal
from penstock.flow.order.orders import Draws, epoch_key, permuted
from penstock.flow.steps import (
    Augment,
    Batch,
    Filter,
    Interleave,
    Map,
    Repeat,
    Shuffle,
    Skip,
    Step,
    Take,
)
from penstock.flow.streams.streams import Stream, guessed_schema
from penstock.flow.user_errors import reason_in_function
from penstock.samples import Sample, Schema
from penstock.seeds import sample_bits
from penstock.wording import counted

USUAL_WINDOW = 1000  # samples in the buffer of a shuffle
BITS_AT_ONCE = 1024


class Item(NamedTuple):
    """A sample, and its number among those that were read in this epoch."""

    number: int
    sample: Sample


class Group(NamedTuple):
    """The samples of one batch: those of this rank."""

    epoch: int
    number: int
    items: list[Item]

    @property
    def bytes(self) -> int:
        return sum(sample_bytes(item.sample) for item in self.items)


Items = Callable[[int], Generator[Item, None, None]]
Groups = Callable[[int], Generator[Group, None, None]]


@dataclass
class Feed:
    """One epoch of a stream; all of it runs in the thread that asks for groups."""

    stream: Stream
    steps: list[tuple[int, Step]]  # with their numbers
    seed: int
    epoch: int
    deal: Deal
    allowance: Allowance
    is_left: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        self.schema: Schema | None = self.stream.schema
        self.first: Item | None = None  # the first that reaches a batch, as the workers will get it
        self.chain: Chain = ()  # what is left to the workers
        self._numbers = itertools.count()

    def groups(self) -> Generator[Group, None, None]:
        """All groups of this epoch."""
        before = list(itertools.takewhile(lambda entry: not isinstance(entry[1], Batch), self.steps))
        return self._grouped(self._items(before), [step for _, step in self.steps[len(before) :]])(self.epoch)

    # Samples

    def _items(self, steps: list[tuple[int, Step]]) -> Items:
        items: Items = self._rotation(steps)
        for number, step in steps:
            if isinstance(step, (Map, Augment)):
                self.chain = (*self.chain, Link(step, self.seed, number))
            elif isinstance(step, Take):
                items = _sliced(items, 0, step.count)
            elif isinstance(step, Skip):
                items = _sliced(items, step.count, None)
            elif isinstance(step, Repeat):
                items = _repeated(items, step.times)
            elif isinstance(step, Shuffle):
                items = self._shuffled(items, step.window or USUAL_WINDOW, number)
            elif isinstance(step, Filter):
                items, self.chain = self._filtered(items, self.chain, step), ()
        return items

    def _rotation(self, steps: list[tuple[int, Step]]) -> Items:
        step = next((step for _, step in steps if isinstance(step, Interleave)), None)
        cycle, block = (self.stream.parts, 1) if step is None else (step.cycle_length, step.block_length)

        def items(epoch: int) -> Generator[Item, None, None]:
            count = 0
            with closing(rotated(self.stream, epoch, cycle, block)) as samples:
                for sample in samples:
                    if self.is_left():
                        return
                    count += 1
                    self._check_length(count, is_end=False)
                    if self.schema is None:
                        self.schema = guessed_schema(sample)
                    yield Item(next(self._numbers), sample)
            self._check_length(count, is_end=True)

        return items

    def _check_length(self, count: int, *, is_end: bool) -> None:
        length = self.stream.length
        if length is not None and (count > length or (is_end and count < length)):
            gave = counted(count, "sample") if is_end else f"more than {counted(int(length), 'sample')}"
            promised = "no end" if math.isinf(length) else f"length={length:,}"
            raise HopError("read", "the stream", f"it gave {gave}, and {promised} was promised")

    def _shuffled(self, inner: Items, window: int, number: int) -> Items:
        def items(epoch: int) -> Generator[Item, None, None]:
            buffer: list[Item] = []
            chosen = _choices(self.seed, number, epoch, window)
            try:
                with closing(inner(epoch)) as incoming:
                    for item in incoming:
                        self._hold(item, window)
                        if len(buffer) < window:
                            buffer.append(item)
                            continue
                        place = next(chosen)
                        leaving, buffer[place] = buffer[place], item
                        self._let_go(leaving)
                        yield leaving
                order = permuted(np.arange(len(buffer)), len(buffer), epoch_key(self.seed, number, epoch, 1))
                for place in order.tolist():
                    yield buffer[place]
            finally:
                for item in buffer:
                    self._let_go(item)

        return items

    def _hold(self, item: Item, window: int) -> None:
        # The order must not depend on what else is in memory, so a buffer is whole or an error.
        if not self.allowance.take(sample_bytes(item.sample)):
            raise OptionError(
                f"shuffle: the memory budget has no room for {counted(window, 'sample')} like these. Use "
                f"shuffle(window=…) with "
                'fewer, or give this flow more: Flow(…, memory="4 GB").'
            )

    def _let_go(self, item: Item) -> None:
        self.allowance.give(sample_bytes(item.sample))

    def _filtered(self, inner: Items, chain: Chain, step: Filter) -> Items:
        def items(epoch: int) -> Generator[Item, None, None]:
            with closing(inner(epoch)) as incoming:
                for item in incoming:
                    made = Item(item.number, self.made(item, chain))
                    if wanted(step, made.sample, None, item.number):
                        yield made

        return items

    def made(self, item: Item, chain: Chain) -> Sample:
        """What steps make of a sample."""
        assert self.schema is not None
        kinds = {field.name: field.kind for field in self.schema.fields}
        number, zero = np.array([item.number]), np.zeros(1, np.int64)
        draw = Draws(zero, number, number.astype(np.uint64), np.array([self.epoch]))
        try:
            return run_chain(chain, item.sample, kinds, draw)
        except (HopError, PackError, OptionError):
            raise
        except Exception as error:
            raise HopError("transform", f"sample {item.number}", reason_in_function(error)) from error

    # Batches

    def _grouped(self, items: Items, steps: list[Step]) -> Groups:
        groups: Groups = self._dealt(items)
        for step in steps:
            if isinstance(step, Take):
                groups = _sliced(groups, 0, step.count)
            elif isinstance(step, Skip):
                groups = _sliced(groups, step.count, None)
            elif isinstance(step, Repeat):
                groups = _repeated(groups, step.times)
        return groups

    def _dealt(self, inner: Items) -> Groups:
        def groups(epoch: int) -> Generator[Group, None, None]:
            with closing(inner(epoch)) as incoming:
                for number in itertools.count():
                    items = list(itertools.islice(incoming, self.deal.batch_size))
                    own = Deal(len(items), *_as_dealt(self.deal))
                    if self.is_left() or not own.count:
                        return
                    self.first = self.first or items[0]
                    start, stop = own.span(0)
                    yield Group(epoch, number, items[start:stop])

        return groups


def _as_dealt(deal: Deal) -> tuple[int, bool, int, int, bool]:
    return deal.batch_size, deal.drop_last, deal.rank, deal.world_size, deal.keep_all


def rotated(stream: Stream, epoch: int, cycle_length: int, block_length: int) -> Generator[Sample, None, None]:
    """The samples of all parts in the order of tf.data's interleave; see `interleaving`."""
    waiting = deque(range(stream.parts))
    places: list[Iterator[Sample] | None] = [None] * min(cycle_length, stream.parts)
    try:
        while waiting or any(place is not None for place in places):
            for place, _ in enumerate(places):
                if places[place] is None and waiting:
                    places[place] = stream.open(waiting.popleft(), epoch)
                yield from _turn(places, place, block_length)
    finally:
        for samples in places:
            _close(samples)


def _turn(places: list[Iterator[Sample] | None], place: int, block_length: int) -> Iterator[Sample]:
    """One block of a part; at its end the place is free."""
    samples = places[place]
    for _ in range(block_length if samples is not None else 0):
        assert samples is not None
        try:
            sample = next(samples)
        except StopIteration:
            places[place] = None
            return
        yield sample


def _close(samples: Any) -> None:
    close = getattr(samples, "close", None)
    if close is not None:
        close()


def _sliced(inner: Any, start: int, stop: int | None) -> Any:
    def sliced(epoch: int) -> Generator[Any, None, None]:
        with closing(inner(epoch)) as incoming:
            yield from itertools.islice(incoming, start, stop)

    return sliced


def _repeated(inner: Any, times: int | None) -> Any:
    def repeated(epoch: int) -> Generator[Any, None, None]:
        for number in itertools.count() if times is None else range(times):
            is_empty = True
            with closing(inner(epoch * (times or 1) + number)) as incoming:
                for one in incoming:
                    is_empty = False
                    yield one
            if is_empty and times is None:
                raise OptionError("repeat() without end has nothing to repeat: the stream gave no samples.")

    return repeated


def _choices(seed: int, step: int, epoch: int, window: int) -> Iterator[int]:
    """Which place of the buffer leaves next."""
    for block in itertools.count():
        numbers = np.arange(block * BITS_AT_ONCE, (block + 1) * BITS_AT_ONCE)
        bits = sample_bits(seed, step, np.full(BITS_AT_ONCE, epoch), numbers)
        yield from (bits % np.uint64(window)).tolist()


def sample_bytes(sample: Sample) -> int:
    """About what a sample holds."""
    return sum(_value_bytes(value) for value in sample.values())


def _value_bytes(value: Any) -> int:
    if isinstance(value, (str, bytes)):
        return len(value)
    return int(getattr(value, "nbytes", 64))
