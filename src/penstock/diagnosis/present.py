"""The present state of a flow and its model, measured: what remedies are judged against."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.diagnosis.comparing import Case, times_as_fast
from penstock.diagnosis.hardware import Hardware
from penstock.diagnosis.profiling import Profile
from penstock.diagnosis.reading import READERS, Reading
from penstock.diagnosis.runs import FeedRun, Step
from penstock.diagnosis.spelling import Spelling
from penstock.diagnosis.variants import few, in_batches
from penstock.flow.flow import Flow
from penstock.flow.measuring.cost_model import Limit, ModelCost, SampleCost, Setup, limits, training_rate
from penstock.samples import Numbers, Raw, Store, Subset, View

# A few samples that are read before a flow runs on them: it shows what a disk allows that nobody waits for.


class KeptReads(View):
    """A source that gives what was read of it; all else it offers is that of the source."""

    def __init__(self, source: Store, kept: dict[int, Raw]) -> None:
        self.source, self._kept = source, kept

    @property
    def kind(self) -> type:
        return self.source.kind

    def read(self, index: int) -> Raw:
        kept = self._kept.get(index)
        return self.source.read(index) if kept is None else kept

    def fingerprint(self) -> str | None:
        return self.source.fingerprint()

    def gather(self, name: str, indices: Numbers) -> NDArray[Any] | None:
        return self.source.gather(name, indices)

    def will_need(self, indices: Numbers) -> int:
        return 0  # what is in memory need not be asked for


def few_read(source: Store, count: int) -> Subset:
    """Some samples of a source, all of them read; clips and the like, which are made of many, are left as they are."""
    some = few(source, count)
    base, indices, frames = some.images_at(np.arange(len(some)))
    if frames > 1:
        return some
    with ThreadPoolExecutor(READERS) as pool:
        read = dict(zip(indices.tolist(), pool.map(lambda index: _read(base, index), indices.tolist()), strict=True))
    return Subset(KeptReads(base, {index: raw for index, raw in read.items() if raw is not None}), indices)


def _read(base: Store, index: int) -> Raw | None:
    """A sample as bytes of its own, which may go to other processes; none where the flow must say what is wrong."""
    try:
        raw = base.read(index)
    except OSError:
        return None
    return Raw(raw.index, bytes(raw.data)) if isinstance(raw.data, memoryview) else raw


MOSTLY = 0.5
FEWEST, MOST = 16, 256  # samples that stand for all of them
LONGEST_IN_TURNS = 1 / 20  # of a trial is one batch: else its turns take longer than people wait
NEVER_SLOW = 0.1  # seconds of a batch
MOST_READ_BYTES = 2**28  # of them, where they are read before a trial
SHARE_OF_MEMORY = 0.8  # of what is free: data below that stays in memory after the first epoch


@dataclass(frozen=True)
class Present:
    """All measurements of one flow."""

    flow: Flow
    running: Flow  # the same, or on fewer samples: one that has settled
    step: Step | None
    profile: Profile
    cost: SampleCost
    setup: Setup
    model: ModelCost | None
    feed: FeedRun  # without the model
    together: FeedRun | None
    reading: Reading | None
    hardware: Hardware
    spelling: Spelling
    warm_samples: int = 0  # after which its cache is full, where it has one
    trial_seconds: float = 1.0  # how long a remedy is run to see what it brings

    @property
    def samples(self) -> int:
        """Of the source."""
        source = self.flow.plan.source
        return 0 if source is None else len(source)

    @cached_property
    def stand_ins(self) -> Store:
        """As many samples as the present flow makes in the time of a trial; read already, where reading waits."""
        source, reading = self.flow.plan.source, self.reading
        assert source is not None
        count = int(np.clip(self.trial_seconds * self.feed.rate, FEWEST, MOST))
        if reading is None or not reading.warm.one.is_waiting:
            return few(source, count)
        return few_read(source, min(count, max(int(MOST_READ_BYTES / max(reading.warm.one.bytes, 1)), 1)))

    @property
    def modelled_rate(self) -> float:
        return training_rate(self.cost, self.setup, self.model)

    @property
    def binding(self) -> Limit:
        """The limit of the feed that binds."""
        return limits(self.cost, self.setup)[0]

    @property
    def measured_rate(self) -> float:
        return self.feed.rate if self.together is None else self.together.rate

    @property
    def batch_seconds(self) -> float:
        """From batch to batch."""
        return self.feed.rows / max(self.measured_rate, 1e-9)

    @property
    def most_by_feed(self) -> float:
        """What a feed that costs nothing would bring: no remedy of the feed brings more."""
        if self.model is None:
            return math.inf
        return training_rate(SampleCost(0.0), replace(self.setup, share=1.0), self.model) / max(
            self.measured_rate, 1e-9
        )

    def speed_up(
        self, *, cost: SampleCost | None = None, setup: Setup | None = None, model: ModelCost | None = None
    ) -> float:
        """What the cost model says of something else in place of what is, where that cannot be run."""
        after = training_rate(cost or self.cost, setup or self.setup, model or self.model)
        return after / max(self.modelled_rate, 1e-9)

    @property
    def is_slow(self) -> bool:
        """Whether batches take so long that turns of them would take longer than people wait."""
        return self.batch_seconds > max(LONGEST_IN_TURNS * self.trial_seconds, NEVER_SLOW)

    def for_trial(self, flow: Flow) -> Flow:
        """The flow as it is tried: in batches so small that they come often, where the user's come seldom."""
        size = max(int(LONGEST_IN_TURNS * self.trial_seconds * self.feed.rate), 1)
        batch = flow.plan.batch
        return in_batches(flow, size) if self.is_slow and batch is not None and batch.size > size else flow

    def times_as_fast(self, flow: Flow, *, warm_samples: int = 0) -> float:
        """How many times the samples a second another flow gives to the same model; measured.

        Where batches are slow the feeds run alone, and what that means for the model is worked out.
        """
        step = None if self.is_slow else self.step
        after, before = self.for_trial(flow), self.for_trial(self.running)
        case = Case(after, step, warm_samples or self.warm_samples)
        try:
            factor = times_as_fast(case, Case(before, step), self.trial_seconds)
        finally:
            after.close()
            if before is not self.running:
                before.close()
        is_worked_out = self.is_slow and self.model is not None
        return self.speed_up(cost=self.cost.times_as_cheap(factor)) if is_worked_out else factor


def cost_of(profile: Profile, deliver: float, reading_rate: float) -> SampleCost:
    """What was measured, as the cost model takes it."""
    locked, held = profile.locked_seconds, profile.held_seconds
    if locked > MOSTLY * held:  # a library may hold both at once
        locked, held = max(locked, held) if locked else 0.0, 0.0
    return SampleCost(
        cpu=profile.crowded.cpu_seconds,
        wait=profile.alone.wait_seconds,
        locked=locked,
        held=held,
        deliver=deliver,
        reading_rate=reading_rate,
    )


def fits_in_memory(present_bytes: float, samples: int, free: int) -> bool | None:
    """Whether the system can keep all of the data; None where nobody knows how much it is."""
    return None if not present_bytes else present_bytes * samples < SHARE_OF_MEMORY * free


def reading_rate(reading: Reading, samples: int, free: int) -> float:
    """What reading allows once the first epoch is over."""
    stays = fits_in_memory(reading.warm.one.bytes, samples, free)
    run = reading.warm if stays is not False or reading.cold is None else reading.cold
    return run.most_per_second
