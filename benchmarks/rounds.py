"""Alternating rounds and what they say: machines are noisy, so only ratios taken in one run count."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """One line of a table: what was measured, the figure, what it must reach, and whether it does."""

    what: str
    figure: str
    must: str
    reached: bool

    def line(self) -> str:
        return f"{'ok  ' if self.reached else 'MISS'} {self.what:<58} {self.figure:<44} must: {self.must}"


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def alternate(
    ours: Callable[[], object], theirs: Callable[[], object], rounds: int, before: Callable[[], object] = lambda: None
) -> tuple[float, float]:
    """Median seconds of both, taken in turns; `before` runs untimed before each."""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        pair = ((0, ours), (1, theirs)) if number % 2 == 0 else ((1, theirs), (0, ours))
        for which, work in pair:
            before()
            times[which].append(seconds(work))
    return statistics.median(times[0]), statistics.median(times[1])
