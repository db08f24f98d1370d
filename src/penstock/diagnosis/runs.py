"""The feed without a model, the model on one batch, and both together: what each gives in a second.

batch   |··· waited ···|──── used ────|··· waited ···|──── used ────|
hops    |== what workers did meanwhile: CPU and waiting of each ====|
"""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from penstock.errors import OptionError
from penstock.flow.flow import Batch, Flow
from penstock.flow.measuring.cost_model import ModelCost
from penstock.flow.measuring.metrics import Costs, summed
from penstock.flow.measuring.waits import Waiting

Step = Callable[[Batch], Any]
SETTLING_SHARE = 0.3  # of the time: the first batches open files, start workers and try settings
FEWEST_BATCHES = 3  # after that
FEWEST_CALLS = 3
LONGEST_FACTOR = 1.5  # slow batches may take so much longer than was planned, but for the last one


@dataclass(frozen=True)
class Moment:
    """One batch: when it was asked for, how long it was waited for and used, and what each hop did meanwhile."""

    start_seconds: float
    waited_seconds: float
    used_seconds: float
    samples: int
    costs: Costs


@dataclass(frozen=True)
class FeedRun:
    """What was delivered after the flow had settled."""

    moments: tuple[Moment, ...]
    executor: str
    workers: int
    prefetch: int
    batch: Batch  # a copy of one
    rows: int  # of it

    @property
    def samples(self) -> int:
        return sum(moment.samples for moment in self.moments)

    @property
    def costs(self) -> Costs:
        return summed(moment.costs for moment in self.moments)

    @property
    def deliver_cpu_seconds(self) -> float:
        """Of a sample."""
        return self.costs.hops["deliver"].cpu_seconds / self.samples

    @property
    def waiting(self) -> Waiting:
        waited = sum(moment.waited_seconds for moment in self.moments)
        return Waiting(waited, sum(moment.used_seconds for moment in self.moments))

    @property
    def rate(self) -> float:
        """Samples a second."""
        return self.samples / max(self.waiting.seconds, 1e-9)


def run_feed(flow: Flow, seconds: float, step: Step | None = None, *, warm_samples: int = 0) -> FeedRun:
    """Run a flow, and use its batches by `step`; nothing counts before so many samples came."""
    kept: Batch | None = None
    moments: list[Moment] = []
    settled: int | None = None  # the moments before
    begin, delivered = time.perf_counter(), 0
    with closing(batches_of(flow)) as batches:
        asked, before = begin, _costs(flow)
        for batch in batches:
            got, rows = time.perf_counter(), len(batch["index"])
            kept = copy.deepcopy(batch) if kept is None else kept
            if step is not None:
                step(batch)
            del batch  # else this frame keeps the slot
            end, after = time.perf_counter(), _costs(flow)
            moments.append(Moment(asked - begin, got - asked, end - got, rows, after.since(before)))
            asked, before, delivered = end, after, delivered + rows
            if settled is None and delivered > warm_samples and end - begin >= SETTLING_SHARE * seconds:
                # A first batch that takes longer than all should is the one that counts: people wait.
                settled = 0 if end - begin > LONGEST_FACTOR * seconds and len(moments) == 1 else len(moments)
            if _is_enough(moments, settled, seconds * (1 - SETTLING_SHARE)):
                break
    if kept is None:
        raise OptionError("this flow gives no batch: its source is empty, or everything was filtered out.")
    return _feed_run(flow, moments, settled, kept)


def _feed_run(flow: Flow, moments: list[Moment], settled: int | None, batch: Batch) -> FeedRun:
    """Without what was before settling; a flow that ended before has only its first batch left out."""
    counted = tuple(moments[settled:] if settled is not None else ()) or tuple(moments[1:] or moments)
    settings, choice = flow.running.tuner.settings, flow.running.workers.choice
    kind = "thread" if choice is None or not settings.workers else choice.kind
    return FeedRun(counted, kind, settings.workers, settings.prefetch, batch, len(batch["index"]))


def _is_enough(moments: list[Moment], settled: int | None, wanted: float) -> bool:
    if settled is None:
        return False
    count = len(moments) - settled
    seconds = sum(moment.waited_seconds + moment.used_seconds for moment in moments[settled:])
    is_slow = seconds > LONGEST_FACTOR * wanted or seconds > wanted * count
    return count >= 1 and seconds >= wanted and (count >= FEWEST_BATCHES or is_slow)


def batches_of(flow: Flow) -> Generator[Batch, None, None]:
    """Epoch after epoch; one without end begins anew each time it is run."""
    running = flow.running
    first = 0 if running.has_random_access and running.is_endless else None
    while True:
        is_empty = True
        for batch in flow.epoch(first):
            is_empty = False
            yield batch
            del batch  # else this frame keeps the slot
        if is_empty or not running.has_random_access:  # a generator may come only once
            return


def _costs(flow: Flow) -> Costs:
    return summed([flow.running.metrics.costs])


def run_model(step: Step, batch: Batch, rows: int, seconds: float) -> ModelCost:
    """The model on one batch again and again; the first calls compile and allocate, and do not count."""
    start = time.perf_counter()
    step(batch)
    if time.perf_counter() - start < seconds:
        step(batch)
    times: list[float] = []
    begin, cpu = time.perf_counter(), time.process_time()
    while len(times) < FEWEST_CALLS or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        step(batch)
        times.append(time.perf_counter() - start)
        if time.perf_counter() - begin > LONGEST_FACTOR * seconds:
            break
    used = time.process_time() - cpu
    return ModelCost(statistics.median(times) / rows, used / (len(times) * rows))
