"""How well predicted behaviours agree with labels, frame by frame and bout by bout.

Labels are 1, 0, and −1 for not labelled, which counts for nothing, element by element. A behaviour that never occurs in
the labels has no F1, precision, recall, AUROC, average precision or bout F1: they are NaN, it is named in `absent`, and
the means over behaviours leave it out. One that occurs and is never predicted has precision 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.results.bouts import BACKGROUND, Runs, runs_of
from penstock.results.ranking import Ranking, ranking
from penstock.wording import counted

if TYPE_CHECKING:
    from penstock.results.ethograms import Ethogram


# How many bouts were found: a predicted bout finds a true one when they share more than half of what both cover.
#
# More than half (an IoU above 0.5) can be true of one pair only, so nothing has to be assigned. Frames without a
# label are cut out of both sides; a bout ends at the end of its video.


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


Reals = NDArray[np.float64]
Counts = NDArray[np.int64]

# Counts of so many frames are exact in float32, whose products are fast.
_BLOCK_FRAMES = 1 << 20

# Means over behaviours, by the name they are logged under.
MEANS = ("f1", "precision", "recall", "accuracy", "auroc", "average_precision", "bout_f1")


@dataclass(frozen=True, eq=False)
class BehaviourScores:
    """Scores of a set of frames, one value for each behaviour; NaN is what cannot be said.

    hits, false_alarms, misses, rejections    frames that are labelled, by what was predicted
    thresholds                                from which probability on a behaviour was taken to be there
    bouts                                     None where the frames are not those of whole videos
    confusion                                 see `confusion_of`
    """

    behaviours: tuple[str, ...]
    hits: Counts
    false_alarms: Counts
    misses: Counts
    rejections: Counts
    auroc: Reals
    average_precision: Reals
    thresholds: Reals
    confusion: Counts
    bouts: BoutCounts | None = None

    @property
    def absent(self) -> tuple[str, ...]:
        """Behaviours that never occur in the labels."""
        return tuple(name for name, count in zip(self.behaviours, self.positives, strict=True) if not count)

    @property
    def positives(self) -> Counts:
        return self.hits + self.misses

    @property
    def f1(self) -> Reals:
        return _ratio(2 * self.hits, 2 * self.hits + self.false_alarms + self.misses, self.positives)

    @property
    def precision(self) -> Reals:
        return _ratio(self.hits, self.hits + self.false_alarms, self.positives)

    @property
    def recall(self) -> Reals:
        return _ratio(self.hits, self.positives, self.positives)

    @property
    def accuracy(self) -> Reals:
        """The share of labelled frames that are right, whether the behaviour occurs or not."""
        frames = self.positives + self.false_alarms + self.rejections
        return _ratio(self.hits + self.rejections, frames, frames)

    @property
    def bout_f1(self) -> Reals:
        return np.full(len(self.behaviours), np.nan) if self.bouts is None else self.bouts.f1()

    def mean(self, name: str, *, background: bool = True) -> float:
        """The mean of a score over the behaviours that have one."""
        values: Reals = getattr(self, name)
        return _mean(
            [value for value, own in zip(values, self.behaviours, strict=True) if background or own != BACKGROUND]
        )

    def scores(self) -> dict[str, float]:
        """The means by name, F1 also without background, and the F1 of each behaviour."""
        whole = {name: self.mean(name) for name in MEANS}
        whole["f1_without_background"] = self.mean("f1", background=False)
        by_behaviour = {f"{name}_f1": float(value) for name, value in zip(self.behaviours, self.f1, strict=True)}
        # A behaviour called "bout" must not hide the F1 of bouts.
        return whole | {name: value for name, value in by_behaviour.items() if name not in whole}

    def details(self) -> dict[str, Any]:
        """What a report draws: scores and counts by behaviour, and what was taken for what."""
        return {
            "behaviours": {name: self._of_behaviour(at) for at, name in enumerate(self.behaviours)},
            "behaviour_confusion": {"behaviours": list(self.behaviours), "counts": self.confusion.tolist()},
        }

    def _of_behaviour(self, at: int) -> dict[str, float | int | None]:
        scores = {name: _known(getattr(self, name)[at]) for name in MEANS}
        counts = {"frames": int(self.positives[at]), "predicted_frames": int(self.hits[at] + self.false_alarms[at])}
        found = {} if self.bouts is None else {name: int(getattr(self.bouts, name)[at]) for name in BoutCounts._fields}
        bouts = {f"{name}_bouts": count for name, count in found.items()}
        return {**scores, "threshold": _known(self.thresholds[at]), **counts, **bouts}


def score_behaviours(
    probabilities: NDArray[Any],
    labels: NDArray[Any],
    behaviours: Sequence[str],
    *,
    thresholds: Sequence[float] | NDArray[Any] | float = 0.5,
    predictions: NDArray[Any] | None = None,
    frame_counts: Sequence[int] | None = None,
) -> BehaviourScores:
    """Compare frames × behaviours with labels of the same shape.

    thresholds     a probability of at least this is present; one for each behaviour, or one for all
    predictions    0 and 1 instead, where more than thresholds decided
    frame_counts   the frames of each video, when the rows are whole videos one behind the other: then bouts count too
    """
    _check(probabilities, labels, behaviours, frame_counts)
    if probabilities.dtype.kind != "f":
        probabilities = probabilities.astype(np.float32)
    limits = np.broadcast_to(np.asarray(thresholds, np.float64), (len(behaviours),))
    present = (
        probabilities >= limits.astype(probabilities.dtype) if predictions is None else np.asarray(predictions) == 1
    )
    known, true = labels >= 0, labels == 1
    rankings = [_ranked(probabilities[:, at], labels[:, at]) for at in range(len(behaviours))]
    return BehaviourScores(
        behaviours=tuple(behaviours),
        hits=_count(present & true),
        false_alarms=_count(present & known & ~true),
        misses=_count(~present & true),
        rejections=_count(~present & known & ~true),
        auroc=np.array([one.auroc() for one in rankings]),
        average_precision=np.array([one.average_precision() for one in rankings]),
        thresholds=limits,
        confusion=confusion_of(present, labels),
        bouts=None if frame_counts is None else count_bouts(present, labels, frame_counts),
    )


def score_ethograms(ethograms: Sequence[Ethogram]) -> BehaviourScores:
    """Scores over all frames of several videos with labels; they share behaviours and thresholds."""
    labels = [one.labels for one in ethograms if one.labels is not None]
    if not labels or len(labels) < len(ethograms):
        without = [one.name for one in ethograms if one.labels is None]
        raise OptionError(f"scores need labels, and there are none of {', '.join(without) or 'any video'}.")
    return score_behaviours(
        np.concatenate([one.probabilities for one in ethograms]),
        np.concatenate(labels),
        ethograms[0].behaviours,
        thresholds=ethograms[0].thresholds,
        predictions=np.concatenate([one.predictions for one in ethograms]),
        frame_counts=[len(one) for one in ethograms],
    )


def best_thresholds(probabilities: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float32]:
    """For each behaviour the threshold of highest F1; 0.5 for one that never occurs."""
    columns = range(probabilities.shape[1])
    best = [_ranked(probabilities[:, at], labels[:, at]).best_threshold() for at in columns]
    return np.array(best, np.float32)


def confusion_of(predictions: NDArray[Any], labels: NDArray[Any]) -> Counts:
    """Truth (rows) by what it was taken for (columns), over frames where every behaviour is labelled.

    On the diagonal a true behaviour was predicted. Beside it, a true behaviour was missed while another was predicted
    that is not there. With one behaviour at a time that is the usual table.
    """
    count = labels.shape[1]
    table = np.zeros((count, count), np.int64)
    for start in range(0, len(labels), _BLOCK_FRAMES):
        rows = slice(start, start + _BLOCK_FRAMES)
        table += _confusion_of_block(predictions[rows] == 1, labels[rows])
    return table


def _confusion_of_block(present: NDArray[np.bool_], labels: NDArray[Any]) -> Counts:
    whole = (labels >= 0).all(axis=1, keepdims=True)
    true = (labels == 1) & whole
    missed, extra = true & ~present, present & ~true & whole
    taken_for: NDArray[np.float32] = missed.astype(np.float32).T @ extra.astype(np.float32)
    return taken_for.astype(np.int64) + np.diag(_count(true & present))


def _ranked(probabilities: NDArray[Any], labels: NDArray[Any]) -> Ranking:
    known = labels >= 0
    return ranking(probabilities[known], labels[known] == 1)


def _check(
    probabilities: NDArray[Any], labels: NDArray[Any], behaviours: Sequence[str], frame_counts: Sequence[int] | None
) -> None:
    if probabilities.shape != labels.shape or probabilities.shape[1:] != (len(behaviours),):
        shapes = f"{probabilities.shape} and {labels.shape}"
        raise OptionError(f"probabilities and labels have the shapes {shapes}, expected frames × {len(behaviours)}.")
    if frame_counts is not None and sum(frame_counts) != len(labels):
        raise OptionError(
            f"frame_counts add up to {sum(frame_counts):,}, and there are {counted(len(labels), 'frame')}."
        )


def _count(is_there: NDArray[np.bool_]) -> Counts:
    counts: Counts = is_there.sum(axis=0, dtype=np.int64)
    return counts


def _ratio(part: Counts, whole: Counts, needed: Counts) -> Reals:
    """0 where there is nothing to divide by, NaN where what is needed is missing."""
    return np.where(needed > 0, part / np.maximum(whole, 1), np.nan)


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
