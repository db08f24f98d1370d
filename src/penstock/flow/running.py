"""A flow at work: its place, its program, its workers, and what it has measured."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.codecs import kernel
from penstock.errors import DataError, OptionError, Problem
from penstock.flow.budget import Allowance, process_budget
from penstock.flow.compiling import leaf_of, program_of
from penstock.flow.engine import Engine
from penstock.flow.making.chains import Chain, Link
from penstock.flow.making.program import BadSample, Program
from penstock.flow.measuring.metrics import Metrics, Stopwatch
from penstock.flow.order.batches import Batches, Deal, Schedule
from penstock.flow.planning import Context, Planned, planned
from penstock.flow.slots import Returned
from penstock.flow.state import VERSION, Reached, State, check_same, plan_fingerprint
from penstock.flow.steps import Batch, Map, Prefetch, Shard, numbered
from penstock.flow.streams.sequences import tell_epoch_end
from penstock.flow.tuning.remembering import Remembered
from penstock.flow.tuning.tuner import Tuner
from penstock.flow.workers.executors import CLOSED, Executor
from penstock.flow.workers.interrupts import interrupts_kept
from penstock.flow.workers.worker_pool import Workers
from penstock.samples import Sample

if TYPE_CHECKING:
    from penstock.flow.plans import FlowOptions, Plan


class Running:
    """What changes while a flow is used. The plan does not."""

    has_random_access = True

    def __init__(self, plan: Plan, options: FlowOptions) -> None:
        self._plan, self._options = plan, options
        self._planned: Planned | None = None
        self._program: Program | None = None
        self.epoch_number = 0
        self.batch_number = 0
        self.bad_in_epoch = 0
        self._has_begun = False  # whether the present epoch was begun here
        self.bad: list[BadSample] = []
        self.metrics = Metrics()
        prefetch = next((step.batches for step in plan.steps if isinstance(step, Prefetch)), None)
        self.tuner = Tuner(options.workers, prefetch, remembered=Remembered(partial(plan_fingerprint, plan, options)))
        self.workers = Workers(options)
        self._returned = Returned()
        self._under_way: list[Any] = []  # what epochs that have begun and not ended hold
        self._closings = 0

    # What follows from the plan, worked out when it is first needed

    @property
    def planned(self) -> Planned:
        if self._planned is None:
            leaf = partial(leaf_of, fast_decode=self._options.fast_decode, memory=self._options.memory)
            self._planned = planned(self._plan, Context(leaf, self._options))
        return self._planned

    @property
    def program(self) -> Program:
        return self._made_program(stay=False)

    def _made_program(self, *, stay: bool) -> Program:
        """The program; with `stay`, processes that tried the first sample stay for an epoch that begins now."""
        if self._program is None:
            try_first = partial(self.workers.first_layout, workers=self.tuner.settings.workers, stay=stay)
            chain = batch_chain_of(self._plan)
            self._program = program_of(self.planned, self._plan, chain, self._options, try_first)
        return self._program

    @property
    def batches(self) -> Batches:
        batch = self._plan.batch
        if batch is None:
            raise OptionError("the plan has no batch: add .batch(size).")
        shard = next((step for step in self._plan.steps if isinstance(step, Shard)), Shard(0, 1, False))
        deal = Deal(
            self.planned.order.length, batch.size, batch.drop_last, shard.rank, shard.world_size, shard.keep_all
        )
        after = self._plan.steps[self._plan.steps.index(batch) + 1 :]
        return Batches(deal, after)

    @property
    def is_endless(self) -> bool:
        return self.batches.is_endless

    @property
    def has_batches(self) -> bool:
        """Whether the plan says how batches are made; looks at nothing else."""
        return self._plan.batch is not None

    @property
    def row_count(self) -> int | None:
        """The rows of every batch, where all have as many; functions on batches may change that."""
        deal = self.batches.deal
        is_even = deal.length is None or deal.drop_last or deal.length % deal.batch_size == 0
        is_same = is_even and deal.batch_size % deal.world_size == 0 and not batch_chain_of(self._plan)
        return deal.most_rows if is_same else None

    def is_exact(self, field: str) -> bool:
        """Whether the values of a field have one size in all batches; functions on batches may change that."""
        return not batch_chain_of(self._plan) and field in self.program.layout.fixed

    def count(self) -> int:
        count = self.batches.count
        if count is None:
            raise OptionError("this flow has no end, so it has no length: repeat() goes on for ever.")
        return count

    def samples(self) -> int:
        length = self.planned.order.length
        return 2**62 if length is None else length

    def sample(self, position: int) -> Sample:
        """One sample of the present epoch, the plain way."""
        order = self.planned.order
        draw = order.draws(np.array([self.epoch_number], np.int64), np.array([position], np.int64))
        from penstock.flow.making.leaves import Leaf

        member = int(draw.member[0])
        leaf = Leaf(self.planned.sources[member], self.planned.chains[member], None, self._options.memory)
        return {**leaf.sample(draw, Stopwatch()), "index": int(draw.index[0])}

    # Epochs

    def epoch(self, number: int | None) -> Iterator[dict[str, Any]]:
        """Begin an epoch; see Flow.epoch."""
        if number is not None:
            if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                raise OptionError(f"epoch {number!r} must be a whole number from 0.")
            if number >= 2**63:
                raise OptionError(f"epoch {number} is too large: there are {2**63:,}.")
            self.epoch_number, self.batch_number, self.bad_in_epoch = number, 0, 0
        elif self._has_begun:
            self.epoch_number, self.batch_number, self.bad_in_epoch = self.epoch_number + 1, 0, 0
        if self.epoch_number and self.is_endless:
            raise OptionError("a flow without end has one epoch, number 0.")
        self._has_begun = True
        return self._run(self.epoch_number, self.batch_number)

    def _run(self, epoch: int, first: int) -> Iterator[dict[str, Any]]:
        self.tuner.recall()
        # Processes get a copy of the sources: they stay only if nothing changes these before the epoch begins.
        stay = all(source.is_prepared for source in self.planned.sources)
        program, batches = self._made_program(stay=stay), self.batches
        for leaf in program.leaves:
            leaf.source.prepare()
        with self.workers.lent(program, self.tuner.settings.workers) as executor:
            yield from self._delivered(program, batches, executor, epoch, first)

    def _delivered(
        self, program: Program, batches: Schedule, executor: Executor, epoch: int, first: int
    ) -> Iterator[dict[str, Any]]:
        """Run the engine, and keep track of the place."""
        allowance = Allowance(process_budget(), self._options.memory)
        returned = self._returned if executor.kind == "thread" else Returned()  # others' memory ends with their epoch
        engine = Engine(program, batches, executor, allowance, self.tuner, self.metrics, returned)
        closings = self._closings
        with self._listed(executor), closing(engine.run(epoch, first)) as deliveries:
            for number, delivery in enumerate(deliveries, start=first):
                self._note_bad(delivery.bad)
                self.epoch_number, self.batch_number = epoch, number + 1
                batch = delivery.batch
                del delivery
                is_last = number + 1 == batches.count
                if is_last:
                    self._finish(epoch)
                try:
                    yield batch
                finally:
                    if is_last and tell_epoch_end(leaf.source for leaf in program.leaves):
                        self.workers.renew()
                del batch
                if closings != self._closings and not is_last:
                    raise OptionError(CLOSED)

    @contextmanager
    def _listed(self, held: Any) -> Iterator[None]:
        """What `close` has to end as long as an epoch is under way."""
        self._under_way.append(held)
        try:
            yield
        finally:
            self._under_way.remove(held)

    def _finish(self, epoch: int) -> None:
        """The last batch is out: what comes next is the next epoch."""
        if self.is_endless:
            return
        self.epoch_number, self.batch_number, self.bad_in_epoch = epoch + 1, 0, 0
        self._has_begun = False

    def _note_bad(self, bad: tuple[BadSample, ...]) -> None:
        if not bad:
            return
        self.bad.extend(bad)
        self.metrics.bad += len(bad)
        self.bad_in_epoch += len(bad)
        limit = self._most_bad()
        if limit is not None and self.bad_in_epoch > limit:
            raise DataError([self._problem(one) for one in self.bad[-self.bad_in_epoch :]])

    def _most_bad(self) -> int | None:
        most = self._options.max_bad
        if most is None or most >= 1 or most == 0:
            return None if most is None else int(most)
        return math.floor(most * self.samples())

    def _problem(self, bad: BadSample) -> Problem:
        return Problem(
            f"sample {bad.index}", None, bad.reason.rstrip("."), f"More than max_bad={self._options.max_bad} were bad."
        )

    # Where it is

    def fingerprint(self) -> str:
        return plan_fingerprint(self._plan, self._options)

    @property
    def reached(self) -> Reached:
        """Where it is, for those who deliver later than they take."""
        return Reached(self.epoch_number, self.batch_number, self.bad_in_epoch)

    @property
    def goes_on(self) -> bool:
        """Whether epoch() goes on from here; where an epoch was begun and left, it begins the next one."""
        return not self._has_begun

    def state(self, reached: Reached | None = None) -> dict[str, Any]:
        """Where it is, or was, or should be."""
        epoch, batch, bad = reached or self.reached
        if self._has_ranks:  # more ranks may leave short batches out: a state counts as one rank does
            batch = self.batches.of_one_rank.before(self.batches.at(0, batch))
        return State(VERSION, self.fingerprint(), kernel.which(), epoch, batch, bad).as_dict()

    def restore(self, state: State, allow_other: bool) -> None:
        check_same(state, self.fingerprint(), kernel.which(), allow_other)
        whole, batch = self.batches.of_one_rank, state.batch
        if whole.count is not None and batch > whole.count:  # as many: more ranks took other ones, and all of them
            raise OptionError(f"this state is at batch {batch}, and an epoch here has {whole.count}. Was it edited?")
        if self._has_ranks:
            batch = self.batches.before(whole.at(0, batch))
        self.epoch_number, self.batch_number, self.bad_in_epoch = state.epoch, batch, state.bad
        self._has_begun = False

    @property
    def _has_ranks(self) -> bool:
        return any(isinstance(step, Shard) and step.world_size > 1 for step in self._plan.steps)

    def close(self) -> None:
        """End epochs that are under way, and what is kept between them."""
        self._closings += 1
        with interrupts_kept():
            for held in list(self._under_way):
                held.close()
        self.workers.close()
        self._returned.rest(0)


def batch_chain_of(plan: Plan) -> Chain:
    """The functions on whole batches."""
    after = False
    links = []
    for number, step in numbered(plan.steps):
        after = after or isinstance(step, Batch)
        if after and isinstance(step, Map):
            links.append(Link(step, plan.seed, number))
    return tuple(links)
