"""A pipeline that does not exist: cores, disk and consumer are numbers, and time is counted, not spent."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.flow.measuring.metrics import Costs, HopCost, Metrics
from penstock.flow.tuning.allocating import Settings
from penstock.flow.tuning.tuner import Tuner

TASK_OVERHEAD = 1e-4  # seconds of CPU to hand out and answer a task


@dataclass(frozen=True)
class Regime:
    """What making and using samples costs; functions are of the time."""

    name: str
    cpu: Callable[[float], float]  # seconds of CPU for a sample
    read: float = 0.0  # seconds until a sample is read
    readers: int = 1000  # reads that the disk serves at once
    consumer: Callable[[float, int], float] = lambda now, batch: 0.0  # seconds for batch number …
    rows: int = 64
    cores: int = 2
    spread: float = 0.1  # of the cost of samples, eight neighbours alike


@dataclass
class Job:
    batch: int
    rows: int
    cpu: float
    read: float
    begun: float = 0.0
    has_read: float = 0.0  # when it was ready for a core
    core_wait: float = 0.0


class Workers:
    """Workers of the regime: each reads its task, waiting for the disk, and then needs a core for it."""

    kind = "thread"

    def __init__(self, regime: Regime, workers: int, seed: int = 0) -> None:
        self.regime, self.workers = regime, workers
        self.now = 0.0
        # What a sample costs follows from its place, so that all settings have the same work.
        factors = np.random.default_rng(seed).lognormal(0, regime.spread, 512).repeat(8)
        self._work = np.concatenate([[0.0], np.cumsum(np.tile(factors, 2))])
        self._events: list[tuple[float, int, str, Job]] = []
        self._orders: deque[tuple[int, int, int]] = deque()
        self._reading: deque[Job] = deque()
        self._runnable: deque[Job] = deque()
        self._in_hand = self._reads = self._running = self._count = 0
        self.done: deque[tuple[int, Costs, int]] = deque()

    def resize(self, workers: int) -> None:
        self.workers = workers
        self._advance()

    def submit(self, batch: int, start: int, rows: int) -> None:
        self._orders.append((batch, start, rows))
        self._advance()

    def next_done(self) -> tuple[int, Costs, int]:
        while not self.done:
            self._step()
        return self.done.popleft()

    def run_until(self, time: float) -> None:
        """Let the workers work while the consumer is busy."""
        while self._events and self._events[0][0] <= time:
            self._step()
        self.now = time

    def _advance(self) -> None:
        while self._orders and self._in_hand < self.workers:
            batch, start, rows = self._orders.popleft()
            first = (batch * self.regime.rows + start) % 4096
            work = float(self._work[first + rows] - self._work[first])
            cpu = work * self.regime.cpu(self.now) + TASK_OVERHEAD
            self._reading.append(Job(batch, rows, cpu, work * self.regime.read, self.now))
            self._in_hand += 1
        while self._reading and self._reads < self.regime.readers:
            job = self._reading.popleft()
            self._reads += 1
            self._later(job.read, "read", job)
        while self._runnable and self._running < self.regime.cores:
            job = self._runnable.popleft()
            job.core_wait = self.now - job.has_read
            self._running += 1
            self._later(job.cpu, "made", job)

    def _later(self, seconds: float, what: str, job: Job) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + seconds, self._count, what, job))

    def _step(self) -> None:
        self.now, _, what, job = heapq.heappop(self._events)
        if what == "read":
            self._reads -= 1
            job.has_read = self.now
            self._runnable.append(job)
        else:
            self._running -= 1
            self._in_hand -= 1
            costs = Costs(core_wait_seconds=job.core_wait)
            costs.hops["decode"].add(HopCost(job.rows, job.cpu, self.now - job.begun - job.cpu, 0))
            self.done.append((job.batch, costs, job.rows))
        self._advance()


class Fixed:
    """Settings that nobody tunes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def started(self, rows: int, most_prefetch: int) -> None:
        pass

    def delivered(self, *args: Any, **more: Any) -> None:
        pass


@dataclass
class Outcome:
    """When each batch was delivered, and what the settings were then."""

    times: list[float]
    settings: list[Settings]

    def rate(self, start: float, stop: float) -> float:
        """Batches a second between two times."""
        times = [time for time in self.times if start <= time < stop]
        return (len(times) - 1) / (times[-1] - times[0])


def run(regime: Regime, tuner: Tuner | Fixed, seconds: float, most_prefetch: int = 32) -> Outcome:
    """Feed the consumer of a regime for some seconds."""
    workers, metrics = Workers(regime, tuner.settings.workers), Metrics()
    left: dict[int, int] = {}
    outcome = Outcome([], [])
    tuner.started(regime.rows, most_prefetch)
    ordered = delivered = 0
    while workers.now < seconds:
        while ordered - delivered < tuner.settings.prefetch + 1:
            step = tuner.settings.rows_of_task(regime.rows, is_shared=not ordered)
            starts = range(0, regime.rows, step)
            left[ordered] = len(starts)
            for start in starts:
                workers.submit(ordered, start, min(step, regime.rows - start))
            ordered += 1
        asked = workers.now
        while left[delivered] or workers.done:
            batch, costs, rows = workers.next_done()
            left[batch] -= 1
            metrics.made(costs, rows)
        waited, used = workers.now - asked, regime.consumer(workers.now, delivered)
        metrics.delivered(HopCost(regime.rows, 0.0, waited, 0), 0, waited)
        outcome.times.append(workers.now)
        outcome.settings.append(tuner.settings)
        workers.run_until(workers.now + used)
        delivered += 1
        tuner.delivered(workers, metrics, samples=regime.rows, waited_seconds=waited, consumer_seconds=used)
    return outcome
