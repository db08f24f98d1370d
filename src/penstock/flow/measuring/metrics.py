"""What a flow has done so far: for each hop items, seconds and bytes; how full the window was; what was bad."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.flow.measuring.hops import Costs, HopCost
from penstock.flow.measuring.metrics_log import MetricsLog


class Work(NamedTuple):
    """What workers have done so far."""

    samples: int
    cpu_seconds: float
    wait_seconds: float  # for anything but a core
    core_wait_seconds: float


class Metrics:
    """Sums since the flow was made; used by the consumer's thread alone."""

    def __init__(self) -> None:
        self.costs = Costs()
        self.batches = 0
        self.samples = 0
        self.made_samples = 0
        self.bad = 0
        self.asked_seconds = 0.0  # from asking for a batch to having it
        self.first_wait_seconds = 0.0  # of these, for the first batch
        self.consumer_seconds = 0.0
        self.ready = 0  # batches that were complete when one was asked for, summed
        self.least_ready: int | None = None
        self.log: MetricsLog | None = None

    def made(self, costs: Costs, samples: int) -> None:
        """A range was made."""
        self.costs.add(costs)
        self.made_samples += samples

    def delivered(self, cost: HopCost, ready: int, asked_seconds: float) -> None:
        """A batch was handed over so long after it was asked for; so many were complete then."""
        self.asked_seconds += asked_seconds
        if not self.batches:
            self.first_wait_seconds = asked_seconds
        self.costs.hops["deliver"].add(cost)
        self.batches += 1
        self.samples += cost.items
        self.ready += ready
        self.least_ready = ready if self.least_ready is None else min(self.least_ready, ready)

    def used(self, seconds: float) -> None:
        """The consumer came back for the next batch after so many seconds."""
        self.consumer_seconds += seconds

    def work(self) -> Work:
        """The sum of what workers did, for those who compare two of them."""
        costs = self.costs
        return Work(self.made_samples, costs.worker_cpu_seconds, costs.worker_wait_seconds, costs.core_wait_seconds)

    @property
    def running_seconds(self) -> float:
        """Seconds that epochs were running: getting batches and using them."""
        return self.asked_seconds + self.consumer_seconds

    def as_dict(self) -> dict[str, Any]:
        seconds = self.running_seconds
        return {
            "batches": self.batches,
            "samples": self.samples,
            "bad_samples": self.bad,
            "running_seconds": seconds,
            "waited_seconds": self.asked_seconds,
            "first_wait_seconds": self.first_wait_seconds,
            "consumer_seconds": self.consumer_seconds,
            "batches_per_second": self.batches / seconds if seconds else 0.0,
            "samples_per_second": self.samples / seconds if seconds else 0.0,
            "ready_batches": {"least": self.least_ready or 0, "mean": self.ready / max(self.batches, 1)},
            "core_wait_seconds": self.costs.core_wait_seconds,
            "lock_wait_seconds": self.costs.lock_wait_seconds,
            "hops": self.costs.as_dict(),
        }
