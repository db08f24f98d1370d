"""Scores that look at the order of probabilities alone: AUROC, average precision, and the threshold of best F1.

All three come from one walk down the sorted probabilities; equal ones are taken together, so that the order of the
frames does not matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

UNDECIDED = 0.5

Reals = NDArray[np.float64]


class Ranking(NamedTuple):
    """For each distinct probability, from high to low: how many are at least as likely, and how many of those true."""

    values: Reals
    taken: NDArray[np.int64]
    hits: NDArray[np.int64]

    @property
    def positives(self) -> int:
        return int(self.hits[-1]) if len(self.hits) else 0

    @property
    def negatives(self) -> int:
        return int(self.taken[-1] - self.hits[-1]) if len(self.hits) else 0

    def auroc(self) -> float:
        """The area under the curve of true over false alarms; NaN where one of both kinds is missing."""
        if not self.positives or not self.negatives:
            return float("nan")
        recall = np.append(0, self.hits) / self.positives
        alarms = np.append(0, self.taken - self.hits) / self.negatives
        return float((np.diff(alarms) * (recall[1:] + recall[:-1])).sum() / 2)

    def average_precision(self) -> float:
        """The mean precision over the steps of recall, without interpolation; NaN where nothing is true."""
        if not self.positives:
            return float("nan")
        gained = np.diff(self.hits, prepend=0) / self.positives
        return float((gained * self.hits / self.taken).sum())

    def best_threshold(self) -> float:
        """Where F1 is highest if at least as likely means present: halfway down to the next probability.

        0.5 where nothing is true.
        """
        if not self.positives:
            return UNDECIDED
        best = int(np.argmax(2 * self.hits / (self.taken + self.positives)))
        value = self.values[best]
        below = self.values[best + 1] if best + 1 < len(self.values) else 0.0
        halfway = float(np.float32((value + below) / 2))
        return halfway if halfway > below else float(value)


def ranking(probabilities: NDArray[Any], is_true: NDArray[np.bool_]) -> Ranking:
    """Sort once; both are vectors of the same frames. Probabilities are compared as float32.

    The bits of a float32 that is not negative are in the order of its value and leave one bit, which takes the truth:
    so plain numbers are sorted, at a tenth of the time that sorting places would take.
    """
    bits = (probabilities.astype(np.float32) + np.float32(0)).view(np.uint32)
    keys = np.sort(bits << 1 | is_true)[::-1]
    hits = np.cumsum(keys & 1, dtype=np.int64)
    values = keys >> 1
    last = np.flatnonzero(np.append(values[1:] != values[:-1], True)) if len(values) else np.zeros(0, np.int64)
    return Ranking(values[last].view(np.float32).astype(np.float64), last + 1, hits[last])
