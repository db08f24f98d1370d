"""From measured costs to settings: pure functions over plain numbers. How many workers give how many samples is said
by `measuring/cost_model.py`; here are margins, steps and what is kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from penstock.flow.measuring.cost_model import SampleCost, workers_that_fill, workers_that_give
from penstock.flow.measuring.waits import Waiting
from penstock.wording import counted

NOTHING_TO_GAIN = 0.03  # a consumer that waits less than this part of its time cannot get much faster
BETTER = 1.03  # what a change must win to be kept: less is noise
MARGIN = 1.1  # by how much the feed shall outrun its consumer
BUSY = 0.9  # workers that work this part of the time are not waiting for orders
LONGEST_TASK, TASK_SECONDS = 0.160, 0.080  # of CPU: each task holds the GIL for 0.3 ms, however short it is
QUICK_BATCH = 0.3  # of a worker: it may make all of such a batch before anything of its costs is known better
MOST_WORKERS = 64
MOST_GROWTH = 4  # at once; a disk that is full before is then noticed after one trial
LEAST_STEP = 1.1  # 23 workers or 24: no trial can tell
MOST_PREFETCH = 32
USUAL_PREFETCH = 2
MOST_BATCHES_AT_ONCE = 4  # more workers than this share batches, or memory would grow with the workers


@dataclass(frozen=True)
class Settings:
    """What may change while a flow runs."""

    workers: int
    prefetch: int
    task_rows: int | None = None  # None: the batch is cut into as many tasks as there are workers

    def rows_of_task(self, rows: int, *, is_shared: bool = False) -> int:
        """Rows of one task; all workers share the first batch and the last ones: nobody waits for one of them."""
        shared = max(-(-rows // max(self.workers, 1)), 1)
        if self.task_rows is None:
            return shared
        return min(self.task_rows, shared) if is_shared else self.task_rows


@dataclass(frozen=True)
class Limits:
    """What settings must keep to: what the machine has, what was pinned, and the budget."""

    cores: int
    rows: int  # of a batch
    most_prefetch: int = MOST_PREFETCH
    workers: int | None = None  # pinned
    prefetch: int | None = None  # pinned


@dataclass(frozen=True)
class Measured:
    """Sums over some deliveries: of the consumer's thread, and of the workers meanwhile."""

    batches: int
    samples: int
    waited_seconds: float  # of the consumer, for batches
    consumer_seconds: float  # of the consumer, with batches
    made: int  # samples that workers finished
    cpu_seconds: float  # of workers
    wait_seconds: float  # of workers while they made samples, for anything but a core
    core_wait_seconds: float = 0.0  # of workers while they made samples, because others had the cores
    consumer_times: Sequence[float] = ()  # seconds with each batch, where they are known

    @property
    def seconds(self) -> float:
        return self.waited_seconds + self.consumer_seconds

    @property
    def rate(self) -> float:
        """Samples delivered in a second."""
        return self.samples / max(self.seconds, 1e-9)

    @property
    def waiting(self) -> Waiting:
        return Waiting(self.waited_seconds, self.consumer_seconds)

    @property
    def waiting_share(self) -> float:
        return self.waiting.share

    @property
    def demand(self) -> float:
        """Samples that the consumer would take in a second, if it never waited."""
        return self.samples / max(self.consumer_seconds, 1e-9)

    @property
    def cpu_cost(self) -> float:
        """CPU seconds of one sample."""
        return self.cpu_seconds / max(self.made, 1)

    @property
    def cost(self) -> float:
        """Seconds that a worker has one sample in hand."""
        return self.in_hand_seconds / max(self.made, 1)

    @property
    def sample_cost(self) -> SampleCost:
        """What a sample takes as these workers made it: waiting for a core is waiting."""
        return SampleCost(self.cpu_cost, (self.wait_seconds + self.core_wait_seconds) / max(self.made, 1))

    @property
    def in_hand_seconds(self) -> float:
        return self.cpu_seconds + self.wait_seconds + self.core_wait_seconds

    def busy(self, workers: int) -> float:
        """The part of their time that workers had something in hand."""
        return self.in_hand_seconds / max(workers * self.seconds, 1e-9)

    @property
    def is_starved(self) -> bool:
        return self.waiting_share > NOTHING_TO_GAIN


Kind = Literal["more", "ahead", "same", "fewer"]


@dataclass(frozen=True)
class Change:
    """Settings to try, and why; its kind says what is asked of them."""

    kind: Kind
    settings: Settings
    why: str


def worth_having(measured: Measured, cores: int) -> int:
    """Workers that keep all cores busy: more than cores only for the time that they wait.

    Waiting for a core does not count: flows of several ranks would outbid each other on the same cores.
    """
    cost = SampleCost(measured.cpu_seconds, measured.wait_seconds)  # of all samples: a ratio is asked for
    return max(round(min(workers_that_fill(cost, cores), MOST_WORKERS)), cores)


def needed(measured: Measured) -> int:
    """Workers that outrun the consumer by the margin."""
    return max(math.ceil(min(workers_that_give(measured.sample_cost, MARGIN * measured.demand), MOST_WORKERS)), 1)


def arranged(settings: Settings, workers: int, measured: Measured, limits: Limits) -> Settings:
    """Settings for so many workers: tasks of a good length, and enough of them under way for all workers."""
    most = limits.prefetch or min(MOST_BATCHES_AT_ONCE, limits.most_prefetch)
    parts = min(max(parts_of_batch(limits.rows, measured.cpu_cost), -(-workers // most)), max(limits.rows, 1))
    task_rows = max(-(-limits.rows // parts), 1)
    prefetch = limits.prefetch or min(max(settings.prefetch, -(-workers // parts) + 1), limits.most_prefetch)
    return Settings(workers, prefetch, task_rows)


def parts_of_batch(rows: int, cpu_cost: float) -> int:
    """Tasks that a batch is cut into by what it costs: cheap ones stay whole."""
    cost = rows * cpu_cost
    return 1 if cost <= LONGEST_TASK else math.ceil(cost / TASK_SECONDS)


def begun(settings: Settings, cost: float, limits: Limits) -> Settings | None:
    """Settings after the first batch, by what a sample takes a worker: where it may have whole batches at once."""
    is_quick = limits.rows * cost <= QUICK_BATCH and settings.workers <= MOST_BATCHES_AT_ONCE
    prefetch = limits.prefetch or min(max(settings.prefetch, settings.workers + 1), limits.most_prefetch)
    if not is_quick or prefetch < settings.workers:
        return None
    return Settings(settings.workers, prefetch, max(limits.rows, 1))


def changes(settings: Settings, measured: Measured, limits: Limits) -> list[Change]:
    """What is worth trying, the most promising first."""
    if not measured.is_starved:
        found = [_fewer(settings, measured, limits)]
    elif measured.busy(settings.workers) < BUSY:
        found = [_further_ahead(settings, measured, limits), _more(settings, measured, limits)]
    else:
        found = [_more(settings, measured, limits)]
    return [change for change in (*found, _tidier(settings, measured, limits)) if change is not None]


def _more(settings: Settings, measured: Measured, limits: Limits) -> Change | None:
    if limits.workers is not None:
        return None
    wanted = min(worth_having(measured, limits.cores), max(needed(measured), settings.workers + 1))
    wanted = min(wanted, max(settings.workers * MOST_GROWTH, limits.cores))
    if wanted < settings.workers * LEAST_STEP:
        return None
    idle = measured.wait_seconds / max(measured.in_hand_seconds, 1e-12)
    reason = "cores were free" if settings.workers < limits.cores else f"workers waited {idle:.0%} of their time"
    why = f"the consumer waited {measured.waiting_share:.0%} of the time and {reason}"
    return Change("more", arranged(settings, wanted, measured, limits), why)


def _further_ahead(settings: Settings, measured: Measured, limits: Limits) -> Change | None:
    feed = measured.cost * limits.rows / max(settings.workers, 1)
    wanted = max(batches_to_bridge(measured.consumer_times, feed), 2 * settings.prefetch)
    better = arranged(replace(settings, prefetch=wanted), settings.workers, measured, limits)
    if limits.prefetch is not None or better.prefetch <= settings.prefetch:
        return None
    return Change("ahead", better, "the consumer waited although workers had nothing to do")


def batches_to_bridge(consumer_times: Sequence[float], feed_seconds: float) -> int:
    """Batches ahead that carry a consumer over the times when it is faster than the feed.

    They are lost while it is fast and won back while it is slow; more than are won back can never be there.
    """
    lost = won = most_lost = most_won = 0.0
    for seconds in consumer_times:
        lost = max(lost + feed_seconds - seconds, 0.0)
        won = max(won + seconds - feed_seconds, 0.0)
        most_lost, most_won = max(most_lost, lost), max(most_won, won)
    return math.ceil(min(most_lost, most_won) / max(feed_seconds, 1e-9)) + 1


def _fewer(settings: Settings, measured: Measured, limits: Limits) -> Change | None:
    wanted = needed(measured)
    if limits.workers is not None or wanted * LEAST_STEP > settings.workers:
        return None
    why = f"the consumer needs {wanted} of {counted(settings.workers, 'worker')}"
    return Change("fewer", arranged(settings, wanted, measured, limits), why)


def _tidier(settings: Settings, measured: Measured, limits: Limits) -> Change | None:
    better = arranged(settings, settings.workers, measured, limits)
    now, then = settings.rows_of_task(limits.rows), better.rows_of_task(limits.rows)
    if 1 / 1.5 <= now / then <= 1.5:
        return None
    why = f"a sample costs {measured.cpu_cost * 1e3:.3g} ms of CPU"
    return Change("same", better, why)


def is_kept(kind: Kind, before: Measured, after: Measured) -> bool:
    """Whether what was tried is good enough: more must bring more, fewer must do, others must not hurt."""
    if kind == "more":
        chance = 1 + 0.5 / min(before.batches, after.batches)  # among few batches, half of one is no gain
        return after.rate > max(BETTER, chance) * before.rate
    if kind == "ahead":
        # A consumer that takes its time now and then makes rates of short windows differ; it must wait less.
        saved = before.waited_seconds / before.batches - after.waited_seconds / after.batches
        return saved > NOTHING_TO_GAIN * before.seconds / before.batches
    if kind == "fewer":
        return not after.is_starved
    return after.rate * BETTER >= before.rate


def is_like(one: Measured, other: Measured) -> bool:
    """Whether samples cost about the same, and are asked for as fast, so that a trial would end as the last one."""
    pairs = ((one.cpu_cost, other.cpu_cost), (one.cost, other.cost), (one.demand, other.demand))
    return all(abs(math.log(max(left, 1e-12) / max(right, 1e-12))) < math.log(1.3) for left, right in pairs)
