"""What a flow has done so far: for each hop items, seconds and bytes; how full the window was; what was bad."""

from __future__ import annotations

import time
from typing import Any

from penstock.flow.hops import Costs, HopCost


class Metrics:
    """Sums since the flow was made; used by the consumer's thread alone."""

    def __init__(self) -> None:
        self.costs = Costs()
        self.batches = 0
        self.samples = 0
        self.bad = 0
        self.ready = 0  # batches that were complete when one was asked for, summed
        self.started = time.perf_counter()

    def made(self, costs: Costs, samples: int) -> None:
        """A range was made."""
        self.costs.add(costs)

    def delivered(self, cost: HopCost, ready: int) -> None:
        """A batch was handed over, after waiting for it."""
        self.costs.hops["deliver"].add(cost)
        self.batches += 1
        self.samples += cost.items
        self.ready += ready

    def as_dict(self) -> dict[str, Any]:
        return {
            "batches": self.batches,
            "samples": self.samples,
            "bad_samples": self.bad,
            "ready_batches": self.ready / max(self.batches, 1),
            "hops": self.costs.as_dict(),
        }
