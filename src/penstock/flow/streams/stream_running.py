"""A flow over a stream at work: what differs from one over a source with random access.

    reader thread ──► groups of samples ──► held until a worker makes them ──► slots, in order, as always

Tasks carry positions here too: each stands for a sample that was read and waits.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

from penstock.errors import OptionError
from penstock.flow.budget import Allowance, process_budget
from penstock.flow.compiling import layout_like
from penstock.flow.making.layout import Place
from penstock.flow.making.leaves import Leaf
from penstock.flow.making.limiting import limited
from penstock.flow.making.program import Piece, Program
from penstock.flow.order.batches import Batches, Deal, Dealt
from penstock.flow.order.orders import Draws, Numbers
from penstock.flow.running import Running, batch_chain_of
from penstock.flow.state import Reached, State
from penstock.flow.steps import (
    Batch,
    Cache,
    Clips,
    Filter,
    Interleave,
    Repeat,
    Shard,
    Skip,
    Step,
    Take,
    Where,
    numbered,
)
from penstock.flow.steps import (
    Sample as SampleStep,
)
from penstock.flow.streams.feeding import Feed, Group, Item, sample_bytes
from penstock.flow.workers.executors import CallingThread, Executor, Threads
from penstock.samples import Raw, Sample, Schema, Store

if TYPE_CHECKING:
    from penstock.flow.plans import FlowOptions, Plan


# The thread that reads a stream ahead, within the budget; or, without workers, reading in the calling thread.


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
                    raise OptionError(
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


# Samples of a stream between their reading and their making: what stands in the places of an order and a source.


@dataclass
class Held:
    """Samples that were read and wait for a worker, by position."""

    reading: Reading
    items: dict[int, Item] = field(default_factory=dict)
    samples: dict[int, Sample] = field(default_factory=dict)  # by their number

    def put(self, position: int, item: Item) -> None:
        self.items[position] = item
        self.samples[item.number] = item.sample

    def take(self, number: int) -> Sample:
        sample = self.samples.pop(number)
        self.reading.give_back(sample_bytes(sample))
        return sample


@dataclass(frozen=True)
class HeldOrder:
    """Which sample stands at a position: that which was put there."""

    held: Held
    length: int | None = None

    def draws(self, epochs: Numbers, positions: Numbers) -> Draws:
        numbers = np.array([self.held.items.pop(position).number for position in positions.tolist()], np.int64)
        return Draws(np.zeros(len(positions), np.int64), numbers, numbers.astype(np.uint64), epochs)


class HeldSource(Store):
    """Gives each sample once."""

    def __init__(self, schema: Schema, held: Held) -> None:
        self._schema, self.held = schema, held

    def __len__(self) -> int:
        return 0

    def read(self, index: int) -> Raw:
        return Raw(index, self.held.take(index))

    def decode(self, raw: Raw) -> Sample:
        return dict(raw.data)


class StreamProgram(Program):
    """What stands at a position is known when it was read, and asked for once."""

    def pieces(self, epoch: int, start: int, stop: int) -> list[Piece]:
        return [Piece(0, self.look_up(epoch, np.arange(start, stop, dtype=np.int64)), None)]


class StreamBatches:
    """The batches of an epoch as they are read; `deal` says how they are cut."""

    count = None
    is_endless = False

    def __init__(self, deal: Deal, reading: Reading) -> None:
        self.deal, self._reading = deal, reading
        self.held = Held(reading)
        self._next: Dealt | None = None
        self._position = 0

    def begin(self) -> bool:
        """Wait for the first; False where the stream has nothing."""
        self._next = self._fetched()
        return self._next is not None

    @property
    def is_ready(self) -> bool:
        """Whether the next batch can be had without waiting."""
        return self._next is not None or self._reading.is_ready

    def numbers(self, first: int) -> Iterator[int]:
        """One number after the other, as long as the stream goes on; `at` then says what it stands for."""
        number = first
        while True:
            self._next = self._next or self._fetched()
            if self._next is None:
                return
            yield number
            number += 1

    def at(self, epoch: int, number: int) -> Dealt:
        """The batch whose number was given last."""
        dealt, self._next = self._next, None
        assert dealt is not None
        return dealt

    def _fetched(self) -> Dealt | None:
        group = self._reading.next()
        if group is None:
            return None
        start = self._position
        for item in group.items:
            self.held.put(self._position, item)
            self._position += 1
        return Dealt(group.epoch, group.number, start, self._position)


SHARE_OF_BUDGET = 0.5  # for samples that wait and are shuffled; the rest is for batches
_REMEDY = "Pack the samples first (penstock.pack takes any Source), and use the pack."


class UnknownLength(OptionError, TypeError):  # noqa: N818 - users see a OptionError
    """A TypeError too: `list` asks for a length first, and goes on without one after a TypeError alone."""


def check_on_stream(before: tuple[Step, ...], step: Step) -> None:
    """Whether a step can be done on a stream at all."""
    if isinstance(step, (Where, SampleStep, Clips)):
        raise OptionError(f"{step.name} asks for samples by their number, and a stream has only a next one. {_REMEDY}")
    if isinstance(step, Cache):
        raise OptionError(f"cache keeps samples by their number, and a stream has only a next one. {_REMEDY}")
    if isinstance(step, Interleave):
        if before:
            raise OptionError("interleave says in which order the parts of a stream are read: make it the first step.")
        if step.by != "auto":
            raise OptionError(f"interleave(by={step.by!r}): a stream is interleaved by its parts; leave `by` out.")


def check_options(options: FlowOptions) -> None:
    """Whether a stream can be run so."""
    if options.on_bad_sample == "substitute":
        raise OptionError(f'on_bad_sample="substitute" takes another sample, and a stream has none to take. {_REMEDY}')


class StreamRunning(Running):
    """An epoch is read from its beginning each time, and has a place, but none that one could go back to."""

    has_random_access = False

    def __init__(self, plan: Plan, options: FlowOptions) -> None:
        check_options(options)
        super().__init__(plan, options)

    @property
    def batches(self) -> Batches:
        self._no_number("this")

    @property
    def row_count(self) -> int | None:
        return None

    def is_exact(self, field: str) -> bool:
        batch = self._plan.batch
        return batch is not None and batch.shapes == "fixed" and not batch_chain_of(self._plan)

    def count(self) -> int:
        count = self._counted()
        if count is None:
            raise UnknownLength(
                "how many batches a stream gives is known at its end only. If you know how many samples it has, say "
                "from_generator(…, length=n), or math.inf and take(n)"
                + (", without a filter." if self._has_filter() else ".")
            )
        if math.isinf(count):
            raise OptionError("this flow has no end, so it has no length: add take(n), or a number to repeat().")
        return int(count)

    def samples(self) -> int:
        self._no_number("flow[i]")

    def state(self, reached: Reached | None = None) -> dict[str, Any]:
        self._no_resume()

    def restore(self, state: State, allow_other: bool) -> None:
        self._no_resume()

    @property
    def is_endless(self) -> bool:
        count = self._counted()
        return count is not None and math.isinf(count)

    def _has_filter(self) -> bool:
        return any(isinstance(step, Filter) for step in self._plan.steps)

    def _no_number(self, what: str) -> NoReturn:
        raise OptionError(f"{what} needs samples that can be asked for by number, and a stream has none. {_REMEDY}")

    def _no_resume(self) -> NoReturn:
        raise OptionError(f"a stream cannot be resumed exactly: a generator cannot be rewound. {_REMEDY}")

    def _counted(self) -> float | None:
        """Batches in an epoch: a number, infinity, or None where nobody knows."""
        assert self._plan.stream is not None
        count: float | None = self._plan.stream.length
        for step in self._plan.steps:
            count = _count_after(count, step, self._deal())
        return count

    def _deal(self, length: int | None = None) -> Deal:
        batch = self._plan.batch
        if batch is None:
            raise OptionError("the plan has no batch: add .batch(size).")
        shard = next((step for step in self._plan.steps if isinstance(step, Shard)), Shard(0, 1, False))
        return Deal(length, batch.size, batch.drop_last, shard.rank, shard.world_size, shard.keep_all)

    # An epoch

    def _run(self, epoch: int, first: int) -> Iterator[dict[str, Any]]:
        memory = process_budget().limit if self._options.memory is None else self._options.memory
        waiting = Allowance(process_budget(), int(memory * SHARE_OF_BUDGET))
        assert self._plan.stream is not None
        feed = Feed(self._plan.stream, numbered(self._plan.steps), self._plan.seed, epoch, self._deal(), waiting)
        self.tuner.recall()
        with closing(self._reading(feed, waiting)) as reading, self._listed(reading):
            batches = StreamBatches(self._deal(), reading)
            if batches.begin():
                program = limited(self._stream_program(feed, batches))
                with closing(self._executor(program)) as executor:
                    yield from self._delivered(program, batches, executor, epoch, 0)

    def _reading(self, feed: Feed, allowance: Allowance) -> Reading:
        if not self.tuner.settings.workers:
            return HereReading(feed.groups())
        reading = ThreadReading(feed.groups(), allowance, lambda: self.tuner.settings.prefetch + 1)
        feed.is_left = lambda: reading.is_closing
        reading.start()
        return reading

    def _executor(self, program: Program) -> Executor:
        workers = self.tuner.settings.workers
        return Threads(program, workers) if workers else CallingThread(program)

    def _stream_program(self, feed: Feed, batches: StreamBatches) -> Program:
        batch = self._plan.batch
        assert batch is not None and feed.first is not None and feed.schema is not None
        source = HeldSource(feed.schema, batches.held)
        sample = feed.made(feed.first, feed.chain)
        layout = layout_like(sample, source, batch)
        layout = replace(layout, fixed={**layout.fixed, "index": Place((), np.dtype(np.int64))})
        leaf = Leaf(source, feed.chain, None)
        order = HeldOrder(batches.held)
        chain = batch_chain_of(self._plan)
        return StreamProgram(self._plan.seed, order, (leaf,), layout, batch, chain, False, ("index",))


def _count_after(count: float | None, step: Step, deal: Deal) -> float | None:
    if isinstance(step, Repeat):
        return math.inf if step.times is None else None if count is None else count * step.times
    if count is None or isinstance(step, Filter):
        return count if count is not None and math.isinf(count) else None
    if isinstance(step, Take):
        return min(count, step.count)
    if isinstance(step, Skip):
        return max(count - step.count, 0)
    if isinstance(step, Batch) and not math.isinf(count):
        return Deal(int(count), deal.batch_size, deal.drop_last, deal.rank, deal.world_size, deal.keep_all).count
    return count
