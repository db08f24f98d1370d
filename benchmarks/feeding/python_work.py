"""A function that holds the GIL: pure Python, about five milliseconds. The standard library is all it needs."""

from __future__ import annotations

import time
from typing import Any

MILLISECONDS = 5.0
ROUNDS_PER_MEASUREMENT = 20_000


def spin(rounds: int) -> int:
    total = 0
    for number in range(rounds):
        total += number & 7
    return total


def calibrated() -> int:
    """How many rounds take five milliseconds of CPU time here."""
    spin(ROUNDS_PER_MEASUREMENT)
    times = []
    for _ in range(20):
        start = time.thread_time()
        spin(ROUNDS_PER_MEASUREMENT)
        times.append(time.thread_time() - start)
    return round(ROUNDS_PER_MEASUREMENT * MILLISECONDS / 1000 / min(times))


class Work:
    """A user's own step; the sample goes through unchanged."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def __call__(self, sample: dict[str, Any]) -> dict[str, Any]:
        spin(self.rounds)
        return sample
