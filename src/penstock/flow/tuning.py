"""How many workers, how many batches ahead, how long a task: chosen from measured costs, never changing a batch."""

from __future__ import annotations

import os
from dataclasses import dataclass

from penstock.flow.metrics import Metrics
from penstock.flow.tasks import Executor


@dataclass(frozen=True)
class Settings:
    """What may change while a flow runs."""

    workers: int
    prefetch: int
    task_rows: int | None = None  # None: the batch is cut into as many tasks as there are workers

    def rows_of_task(self, rows: int) -> int:
        if self.task_rows is not None:
            return self.task_rows
        return max(-(-rows // max(self.workers, 1)), 1)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


class Tuner:
    """Fixed settings for now."""

    def __init__(self, workers: int | None, prefetch: int | None) -> None:
        self.settings = Settings(cores() if workers is None else workers, prefetch or 3)

    def delivered(self, executor: Executor, metrics: Metrics, consumer_seconds: float) -> None:
        """One more batch was used."""
