"""What each of the five hops of a sample costs: items, CPU seconds, other seconds, bytes."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

HOPS = ("read", "decode", "transform", "collate", "deliver")
MADE_BY_WORKERS = HOPS[:-1]  # the thread that takes the batches delivers
NANO = 1e-9


@dataclass
class HopCost:
    """The sum over some samples at one hop; `wait_seconds` is time that passed without using the CPU."""

    items: int = 0
    cpu_seconds: float = 0.0
    wait_seconds: float = 0.0
    bytes: int = 0

    def add(self, other: HopCost) -> None:
        self.items += other.items
        self.cpu_seconds += other.cpu_seconds
        self.wait_seconds += other.wait_seconds
        self.bytes += other.bytes

    def since(self, before: HopCost) -> HopCost:
        return HopCost(
            self.items - before.items,
            self.cpu_seconds - before.cpu_seconds,
            self.wait_seconds - before.wait_seconds,
            self.bytes - before.bytes,
        )

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass
class Costs:
    """The costs of all hops."""

    hops: dict[str, HopCost] = field(default_factory=lambda: {hop: HopCost() for hop in HOPS})
    core_wait_seconds: float = 0.0  # the part of the waiting of all hops in which no core was free
    lock_wait_seconds: float = 0.0  # the part in which another thread held the lock of a source, where it tells that

    def add(self, other: Costs) -> None:
        self.core_wait_seconds += other.core_wait_seconds
        self.lock_wait_seconds += other.lock_wait_seconds
        for hop, cost in other.hops.items():
            self.hops[hop].add(cost)

    @property
    def cpu_seconds(self) -> float:
        return sum(cost.cpu_seconds for cost in self.hops.values())

    @property
    def wait_seconds(self) -> float:
        return sum(cost.wait_seconds for cost in self.hops.values())

    @property
    def worker_cpu_seconds(self) -> float:
        return sum(self.hops[hop].cpu_seconds for hop in MADE_BY_WORKERS)

    @property
    def worker_wait_seconds(self) -> float:
        """Of workers with a sample in hand, for anything but a core."""
        return max(sum(self.hops[hop].wait_seconds for hop in MADE_BY_WORKERS) - self.core_wait_seconds, 0.0)

    def since(self, before: Costs) -> Costs:
        """What was added after an earlier copy was taken."""
        return Costs(
            {hop: cost.since(before.hops[hop]) for hop, cost in self.hops.items()},
            self.core_wait_seconds - before.core_wait_seconds,
            self.lock_wait_seconds - before.lock_wait_seconds,
        )

    def as_dict(self) -> dict[str, Any]:
        return {hop: cost.as_dict() for hop, cost in self.hops.items()}


class Stopwatch:
    """Gives the time since the last lap to a hop. CPU time is of this thread: waiting for others is not a cost."""

    def __init__(self) -> None:
        self.costs = Costs()
        self._cpu, self._wall = time.thread_time_ns(), time.perf_counter_ns()

    def count(self, hop: str, items: int) -> None:
        """Samples that passed a hop whose time was counted before."""
        self.costs.hops[hop].items += items

    def lap(self, hop: str, items: int = 0, size: int = 0) -> None:
        cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
        cost = self.costs.hops[hop]
        cost.items += items
        cost.bytes += size
        cost.cpu_seconds += (cpu - self._cpu) * NANO
        cost.wait_seconds += max(wall - self._wall - (cpu - self._cpu), 0) * NANO
        self._cpu, self._wall = cpu, wall


def summed(parts: Iterable[Costs]) -> Costs:
    total = Costs()
    for part in parts:
        total.add(part)
    return total
