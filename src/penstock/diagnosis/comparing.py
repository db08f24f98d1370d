"""A remedy beside the present state: both run in turns, each with the machine to itself.

present  |settled|── turn ──|          |── turn ──|          |── turn ──|
remedy   |settles|          |── turn ──|          |── turn ──|          |── turn ──|

A machine is faster now and slower then, because it gets warm or others use it: in short turns that meets both.
"""

from __future__ import annotations

import statistics
import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from penstock.diagnosis.runs import Step, batches_of
from penstock.flow.flow import Flow
from penstock.flow.tuning.allocating import MOST_BATCHES_AT_ONCE

PAIRS = 3  # of turns
FEWEST_BATCHES = 4  # of a turn
LONGEST_TURN = 4  # slow batches may take so much longer than was planned
LONGEST_FACTOR = 1.5  # all turns together


@dataclass(frozen=True)
class Case:
    """A flow, the model that uses its batches, and the samples after which a cache is full."""

    flow: Flow
    step: Step | None = None
    warm_samples: int = 0


@dataclass
class Taken:
    """What one turn gave."""

    samples: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        return self.samples / max(self.seconds, 1e-9)


def times_as_fast(after: Case, before: Case, seconds: float) -> float:
    """The samples a second of one case as a factor of those of the other, in about so many seconds.

    The median of all pairs of turns: when others have the machine for a moment, one pair is wrong and not the answer.
    """
    turn = seconds / (2 * PAIRS + 2)
    settle(after, 2 * turn)
    factors: list[float] = []
    begin = time.perf_counter()
    while len(factors) < PAIRS and time.perf_counter() - begin < LONGEST_FACTOR * seconds:
        rate_before = take(before, turn).rate
        factors.append(take(after, turn).rate / max(rate_before, 1e-9))
    return statistics.median(factors)


def settle(case: Case, seconds: float) -> None:
    """Let a flow start its workers and fill its cache, and then for some time find its settings."""
    samples, warm_until = 0, None
    with closing(batches_of(case.flow)) as batches:
        for batch in batches:
            samples += _used(batch, case.step)
            del batch  # else this frame keeps the slot
            if samples >= case.warm_samples:
                warm_until = warm_until or time.perf_counter() + seconds
            if warm_until is not None and time.perf_counter() >= warm_until:
                return


def take(case: Case, seconds: float) -> Taken:
    """Run a flow for a turn; between turns nothing of it goes on, and the first batches of each do not count."""
    together = min(max(case.flow.running.tuner.settings.workers, 1), MOST_BATCHES_AT_ONCE)
    start, count, taken = 0.0, 0, Taken()
    with closing(batches_of(case.flow)) as batches:
        for batch in batches:
            samples = _used(batch, case.step)
            del batch  # else this frame keeps the slot
            count += 1
            if count > together:
                taken.samples += samples
            if count % together:  # workers with a batch each are done at about the same time
                continue
            now = time.perf_counter()
            start = start or now
            taken.seconds = now - start
            if _is_over(taken.seconds, count - together, seconds):
                break
    return taken


def _is_over(taken: float, batches: int, wanted: float) -> bool:
    return taken >= wanted and (batches >= FEWEST_BATCHES or taken > LONGEST_TURN * wanted)


def _used(batch: dict[str, Any], step: Step | None) -> int:
    """Give a batch to the model; its rows."""
    if step is not None:
        step(batch)
    return len(batch["index"])
