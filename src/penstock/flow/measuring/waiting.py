"""Whether data or compute is the limit: the one rule of explanations, trainings, reports and the doctor.

A consumer either uses a batch or waits for the next one. Where it waits for a tenth of its time or more, it is bound by
data; below that there is nothing to do about the feed.
"""

from __future__ import annotations

from dataclasses import dataclass

NOTABLE_SHARE = 0.1
MOST_GAIN = 100.0  # a consumer that does next to nothing says nothing about how fast it could be


@dataclass(frozen=True)
class Waiting:
    """How a consumer spent its time."""

    waited_seconds: float  # for batches
    used_seconds: float  # with them

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
        return "bound by data" if self.is_bound_by_data else "bound by compute"

    @property
    def gain(self) -> float:
        """How many times as fast it would be if it never waited."""
        return min(self.seconds / max(self.used_seconds, 1e-9), MOST_GAIN)
