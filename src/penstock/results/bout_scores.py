"""How many bouts were found: a predicted bout finds a true one when they share more than half of what both cover.

More than half (an IoU above 0.5) can be true of one pair only, so nothing has to be assigned. Frames without a label
are cut out of both sides; a bout ends at the end of its video.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.results.bouts import Runs, runs_of

BOUT_IOU = 0.5


class BoutCounts(NamedTuple):
    """Of each behaviour: true bouts, predicted ones, and pairs of both."""

    true: NDArray[np.int64]
    predicted: NDArray[np.int64]
    found: NDArray[np.int64]

    def f1(self) -> NDArray[np.float64]:
        """NaN for a behaviour without a true bout."""
        both = (self.true + self.predicted).astype(np.float64)
        return np.where(self.true > 0, 2 * self.found / np.maximum(both, 1), np.nan)


def count_bouts(predictions: NDArray[Any], labels: NDArray[Any], frame_counts: Sequence[int]) -> BoutCounts:
    """Compare the bouts of videos that lie behind one another; −1 in `labels` is not labelled."""
    places = apart(frame_counts)
    counts = [_of_behaviour(predictions[:, at], labels[:, at], places) for at in range(labels.shape[1])]
    return BoutCounts(*np.array(counts, np.int64).reshape(-1, 3).T)


def apart(frame_counts: Sequence[int]) -> NDArray[np.int64]:
    """A place for each frame, with an empty one between two videos."""
    return np.arange(sum(frame_counts)) + np.repeat(np.arange(len(frame_counts)), frame_counts)


def _of_behaviour(predicted: NDArray[Any], labels: NDArray[Any], places: NDArray[np.int64]) -> tuple[int, int, int]:
    known = labels >= 0
    truth = _runs((labels == 1) & known, places)
    guess = _runs((predicted == 1) & known, places)
    return len(truth.starts), len(guess.starts), _pairs(truth, guess)


def _runs(present: NDArray[np.bool_], places: NDArray[np.int64]) -> Runs:
    spread = np.zeros(int(places[-1]) + 1 if len(places) else 0, bool)
    spread[places] = present
    return runs_of(spread)


def _pairs(truth: Runs, guess: Runs) -> int:
    """A pair that shares more than half of both shares the middle of each, so each guess has one candidate."""
    if not len(truth.starts) or not len(guess.starts):
        return 0
    middles = (guess.starts + guess.stops - 1) / 2
    candidate = np.maximum(np.searchsorted(truth.starts, middles, side="right") - 1, 0)
    starts, stops = truth.starts[candidate], truth.stops[candidate]
    shared = np.minimum(stops, guess.stops) - np.maximum(starts, guess.starts)
    covered = np.maximum(stops, guess.stops) - np.minimum(starts, guess.starts)
    return int(np.count_nonzero(shared > BOUT_IOU * covered))
