"""Autotune beside an exhaustive search: `python -m benchmarks.feeding.tuning SETTINGS` prints rates.

Fixed settings are searched first, in alternating rounds; then a flow that has never run tunes itself for five
seconds, and its rate after that is measured in turns with the best fixed setting.
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import time
from typing import Any

import penstock as ps

WORKERS, PREFETCH = (1, 2, 3, 4), (1, 2, 4, 8)
SETTLING_SECONDS, WINDOW_SECONDS, ROUNDS = 5.0, 2.0, 5


def flow_of(settings: dict[str, Any], workers: int | str, prefetch: int | str) -> ps.Flow:
    flow = ps.Flow(ps.open(settings["pack"]), seed=7, workers=workers)
    flow = flow.shuffle().repeat().map(ps.augment.RandomResizedCrop(224)).map(ps.augment.HorizontalFlip())
    return flow.batch(settings["batch"]).prefetch(prefetch)


class Running:
    """A flow without end that is asked for some seconds of batches at a time."""

    def __init__(self, settings: dict[str, Any], workers: int | str, prefetch: int | str) -> None:
        self.flow = flow_of(settings, workers, prefetch)
        self._batches = iter(self.flow.epoch(0))

    def rate(self, seconds: float) -> float:
        next(self._batches)  # what was made ahead while others ran is not counted
        samples, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            samples += len(next(self._batches)["image"])
        return samples / (time.perf_counter() - start)

    def close(self) -> None:
        self._batches.close()  # type: ignore[attr-defined]
        self.flow.close()


def measured(settings: dict[str, Any], workers: int, prefetch: int, seconds: float) -> float:
    running = Running(settings, workers, prefetch)
    try:
        return running.rate(seconds)
    finally:
        running.close()


def searched(settings: dict[str, Any]) -> dict[tuple[int, int], float]:
    grid = list(itertools.product(WORKERS, PREFETCH))
    rates: dict[tuple[int, int], list[float]] = {place: [] for place in grid}
    for number in range(3):
        for place in grid if number % 2 == 0 else grid[::-1]:
            rates[place].append(measured(settings, *place, WINDOW_SECONDS / 2))
    return {place: statistics.median(found) for place, found in rates.items()}


def main() -> None:
    settings = json.loads(sys.argv[1])
    found = searched(settings)
    best = max(found, key=lambda place: found[place])
    tuned = Running(settings, "auto", "auto")
    tuned.rate(SETTLING_SECONDS)
    fixed: list[float] = []
    own: list[float] = []
    for _ in range(ROUNDS):
        own.append(tuned.rate(WINDOW_SECONDS))
        fixed.append(measured(settings, *best, WINDOW_SECONDS))
    tuned.close()
    table = {f"{workers} workers, {prefetch} ahead": rate for (workers, prefetch), rate in found.items()}
    answer = {"best": best, "fixed": statistics.median(fixed), "tuned": statistics.median(own), "search": table}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
