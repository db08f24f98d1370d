"""Whether data or compute is the limit: the one rule of explanations, trainings, reports and the doctor.

A consumer either uses a batch or waits for the next one. Where it waits for a tenth of its time or more, it is bound by
data; below that there is nothing to do about the feed. Nothing is said before ENOUGH_BATCHES batches, and the wait for
the first one does not count: it opens files and starts workers, whatever the training does afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NOTABLE_SHARE = 0.1
ENOUGH_BATCHES = 8  # the first ones open files and fill caches
NOT_KNOWN = f"too few steps to say whether data or compute is the limit (it takes {ENOUGH_BATCHES})"
MOST_GAIN = 100.0  # a consumer that does next to nothing says nothing about how fast it could be


@dataclass(frozen=True)
class Waiting:
    """How a consumer spent its time."""

    waited_seconds: float  # for batches
    used_seconds: float  # with them
    batches: float = ENOUGH_BATCHES

    @classmethod
    def of(cls, metrics: Mapping[str, Any]) -> Waiting:
        """From the metrics of a flow, without the wait for the first batch."""
        waited = metrics["waited_seconds"] - metrics.get("first_wait_seconds", 0.0)
        return cls(max(waited, 0.0), metrics["consumer_seconds"], metrics["batches"])

    @property
    def is_known(self) -> bool:
        """Whether there were enough batches to say anything."""
        return self.batches >= ENOUGH_BATCHES and self.seconds > 0

    @property
    def seconds(self) -> float:
        return self.waited_seconds + self.used_seconds

    @property
    def share(self) -> float:
        """The part of its time that it waited; 0 where no time passed."""
        return self.waited_seconds / self.seconds if self.seconds else 0.0

    @property
    def is_bound_by_data(self) -> bool:
        return self.share >= NOTABLE_SHARE

    @property
    def limit(self) -> str:
        if not self.is_known:
            return "too few steps to say"
        return "bound by data" if self.is_bound_by_data else "bound by compute"

    @property
    def gain(self) -> float:
        """How many times as fast it would be if it never waited."""
        return min(self.seconds / max(self.used_seconds, 1e-9), MOST_GAIN)

    @property
    def gain_words(self) -> str:
        """What could be won, as a sentence."""
        return f"Without waiting for data, training would be {self.gain:.1f} × faster."
