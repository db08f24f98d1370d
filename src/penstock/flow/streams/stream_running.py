"""A flow over a stream at work: what differs from one over a source with random access.

    reader thread ──► groups of samples ──► held until a worker makes them ──► slots, in order, as always

Tasks carry positions here too: each stands for a sample that was read and waits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from penstock.errors import RecipeError
from penstock.flow.budget import Allowance, process_budget
from penstock.flow.compiling import layout_like
from penstock.flow.making.layout import Place
from penstock.flow.making.leaves import Leaf
from penstock.flow.making.limiting import limited
from penstock.flow.making.program import Program
from penstock.flow.order.batches import Batches
from penstock.flow.order.dealing import Deal
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
from penstock.flow.streams.feeding import Feed
from penstock.flow.streams.stream_batches import HeldOrder, HeldSource, StreamBatches, StreamProgram
from penstock.flow.streams.stream_reading import HereReading, Reading, ThreadReading
from penstock.flow.workers.tasks import Executor
from penstock.flow.workers.threads import CallingThread, Threads

if TYPE_CHECKING:
    from penstock.flow.plans import FlowOptions, Plan

SHARE_OF_BUDGET = 0.5  # for samples that wait and are shuffled; the rest is for batches
_REMEDY = "Pack the samples first (penstock.pack takes any Source), and use the pack."


class UnknownLength(RecipeError, TypeError):  # noqa: N818 - users see a RecipeError
    """A TypeError too: `list` asks for a length first, and goes on without one after a TypeError alone."""


def check_on_stream(before: tuple[Step, ...], step: Step) -> None:
    """Whether a step can be done on a stream at all."""
    if isinstance(step, (Where, SampleStep, Clips)):
        raise RecipeError(f"{step.name} asks for samples by their number, and a stream has only a next one. {_REMEDY}")
    if isinstance(step, Cache):
        raise RecipeError(f"cache keeps samples by their number, and a stream has only a next one. {_REMEDY}")
    if isinstance(step, Interleave):
        if before:
            raise RecipeError("interleave says in which order the parts of a stream are read: make it the first step.")
        if step.by != "auto":
            raise RecipeError(f"interleave(by={step.by!r}): a stream is interleaved by its parts; leave `by` out.")


def check_options(options: FlowOptions) -> None:
    """Whether a stream can be run so."""
    if options.on_bad_sample == "substitute":
        raise RecipeError(f'on_bad_sample="substitute" takes another sample, and a stream has none to take. {_REMEDY}')


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
            raise RecipeError("this flow has no end, so it has no length: add take(n), or a number to repeat().")
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
        raise RecipeError(f"{what} needs samples that can be asked for by number, and a stream has none. {_REMEDY}")

    def _no_resume(self) -> NoReturn:
        raise RecipeError(f"a stream cannot be resumed exactly: a generator cannot be rewound. {_REMEDY}")

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
            raise RecipeError("the plan has no batch: add .batch(size).")
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
