"""What one sample takes at each hop, from sums over many: what explanations and the doctor put into the cost model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from penstock.flow.measuring.cost_model import LEAST_SHARE
from penstock.flow.measuring.metrics import HOPS, MADE_BY_WORKERS, Costs


@dataclass(frozen=True)
class HopTimes:
    """Seconds and bytes of one sample at one hop."""

    cpu_seconds: float = 0.0
    wait_seconds: float = 0.0
    bytes: float = 0.0


@dataclass(frozen=True)
class SampleTimes:
    """Seconds of one sample at every hop, as some threads made it."""

    threads: int
    hops: dict[str, HopTimes]
    core_wait_seconds: float
    lock_wait_seconds: float

    @cached_property
    def cpu_seconds(self) -> float:
        return sum(hop.cpu_seconds for hop in self.hops.values())

    @cached_property
    def wait_seconds(self) -> float:
        """For anything but a core."""
        return sum(hop.wait_seconds for hop in self.hops.values())

    @classmethod
    def of(cls, costs: Costs, samples: int, threads: int) -> SampleTimes:
        """From sums over the hops that workers make: `deliver` is the consumer's, and its waiting is for the workers.

        Which hop it was that had no core is not known: each is taken to have had its share of it.
        """
        waited = sum(costs.hops[hop].wait_seconds for hop in MADE_BY_WORKERS)
        own = costs.worker_wait_seconds / max(waited, 1e-12)
        hops = {hop: HopTimes() for hop in HOPS}
        for hop in MADE_BY_WORKERS:
            cost = costs.hops[hop]
            hops[hop] = HopTimes(cost.cpu_seconds / samples, own * cost.wait_seconds / samples, cost.bytes / samples)
        return cls(threads, hops, costs.core_wait_seconds / samples, costs.lock_wait_seconds / samples)

    @property
    def core_share(self) -> float:
        """The part of the time that a thread had a core when it could use one."""
        wanted = self.cpu_seconds + self.core_wait_seconds
        return max(self.cpu_seconds / wanted, LEAST_SHARE) if wanted else 1.0
