"""How well predicted boxes agree with true ones: one function for training, command line and Python.

A prediction is matched with a true box of its image when the assignment of largest shared area pairs them and their IoU
is above a limit. `box_precision` and `box_recall` are means over images, as the tree crown benchmarks have
them; `pooled_*` are over all boxes together. By class, a box that was not found, or found as another class, counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.geometry.overlaps import BoxSet, Numbers, Reals
from penstock.results.average_precision import IOUS, AveragePrecision, average_precision
from penstock.results.box_matching import NOBODY, Overlaps, match, overlaps_of

MATCH_IOU = 0.4


@dataclass(frozen=True, eq=False)
class ImageBoxes:
    """Boxes of many images: for each its image by number, class by number (−1: none), and score where it has one."""

    images: Numbers
    boxes: Reals
    labels: Numbers
    scores: Reals | None = None

    @classmethod
    def of(
        cls,
        boxes: Sequence[NDArray[np.floating]],
        labels: Sequence[NDArray[np.integer]],
        scores: Sequence[NDArray[np.floating]] | None = None,
    ) -> ImageBoxes:
        """From one array for each image."""
        counts = [len(some) for some in boxes]
        return cls(
            images=np.repeat(np.arange(len(counts)), counts),
            boxes=np.concatenate([np.zeros((0, 4)), *(np.reshape(some, (-1, 4)) for some in boxes)]),
            labels=np.concatenate([np.zeros(0, np.int64), *labels]).astype(np.int64),
            scores=None if scores is None else np.concatenate([np.zeros(0), *scores]),
        )

    def __len__(self) -> int:
        return len(self.images)

    def taken(self, chosen: NDArray[np.bool_] | Numbers) -> ImageBoxes:
        scores = None if self.scores is None else self.scores[chosen]
        return ImageBoxes(self.images[chosen], self.boxes[chosen], self.labels[chosen], scores)


@dataclass(frozen=True, eq=False)
class BoxScores:
    """Scores of a set of images; NaN is what cannot be said, such as a precision without predictions.

    precisions, recalls       one for each image; NaN where it does not count
    found_as                  classes + 1 square: true boxes (rows; the last: nothing true) by what they were found as
                              (columns; the last: not found)
    matches                   for each true box the number of its prediction, −1 where it was not found
    kept                      which predictions had score enough to count, as numbers
    """

    classes: tuple[str, ...]
    truth_counts: Numbers
    prediction_counts: Numbers
    match_counts: Numbers
    precisions: Reals
    recalls: Reals
    found_as: Numbers
    matches: Numbers
    kept: Numbers
    ap_by_class: Reals
    ap50: float
    ap: float
    empty_frame_accuracy: float

    @property
    def box_precision(self) -> float:
        return _mean(self.precisions)

    @property
    def box_recall(self) -> float:
        return _mean(self.recalls)

    @property
    def box_f1(self) -> float:
        return f1(self.box_precision, self.box_recall)

    @property
    def pooled_precision(self) -> float:
        return _ratio(self.match_counts.sum(), self.counted_predictions)

    @property
    def pooled_recall(self) -> float:
        return _ratio(self.match_counts.sum(), self.truth_counts.sum())

    @property
    def pooled_f1(self) -> float:
        return f1(self.pooled_precision, self.pooled_recall)

    @property
    def counted_predictions(self) -> int:
        """Predictions in images that count for precision."""
        return int(self.prediction_counts[~np.isnan(self.precisions)].sum())

    def class_recall(self, number: int) -> float:
        """The share of the true boxes of a class that were found as that class."""
        return _ratio(self.found_as[number, number], self.found_as[number].sum())

    def class_precision(self, number: int) -> float:
        """The share of the predictions of a class that are true boxes of that class."""
        return _ratio(self.found_as[number, number], self.found_as[:, number].sum())

    def scores(self) -> dict[str, float]:
        """The scores by name, as they are logged and written."""
        named = ("box_precision", "box_recall", "box_f1", "pooled_precision", "pooled_recall", "pooled_f1")
        whole = {name: getattr(self, name) for name in named}
        whole |= {"ap50": self.ap50, "ap": self.ap, "empty_frame_accuracy": self.empty_frame_accuracy}
        by_class = {f"{name}_recall": self.class_recall(at) for at, name in enumerate(self.classes)}
        # A class called "box" must not hide the recall of all boxes.
        return whole | {name: value for name, value in by_class.items() if name not in whole}

    def details(self) -> dict[str, Any]:
        """What a report draws: counts, scores by class, and what was found as what."""
        return {
            "images": len(self.truth_counts),
            "truth_boxes": int(self.truth_counts.sum()),
            "predictions": int(self.prediction_counts.sum()),
            "matches": int(self.match_counts.sum()),
            "classes": {name: self._of_class(at) for at, name in enumerate(self.classes)},
            "found_as": {"classes": [*self.classes, "nothing"], "counts": self.found_as.tolist()},
        }

    def _of_class(self, number: int) -> dict[str, float]:
        precision, recall = self.class_precision(number), self.class_recall(number)
        return {
            "precision": precision,
            "recall": recall,
            "f1": f1(precision, recall),
            "ap50": float(self.ap_by_class[number, 0]),
            "ap": float(self.ap_by_class[number].mean()),
            "truth_boxes": int(self.found_as[number].sum()),
            "predictions": int(self.found_as[:, number].sum()),
        }


def score_boxes(
    predictions: ImageBoxes,
    truth: ImageBoxes,
    *,
    image_count: int,
    classes: Sequence[str],
    iou: float = MATCH_IOU,
    min_score: float | None = None,
    count_empty: bool = False,
    listed: NDArray[np.bool_] | None = None,
) -> BoxScores:
    """Compare predicted with true boxes of the images 0 to `image_count` − 1.

    iou           a match needs more than this
    min_score     leave out predictions below this score
    count_empty   predictions in images without true boxes count against precision; else those images are left out of it
    listed        images that the truth is about; empty frames are those of them without true boxes. By default all
    """
    kept = _scoring(predictions, min_score)
    predictions = predictions.taken(kept)
    overlaps = overlaps_of(BoxSet(predictions.boxes, predictions.images), BoxSet(truth.boxes, truth.images))
    matches = match(overlaps, iou=iou)
    truth_counts = np.bincount(truth.images, minlength=image_count)
    prediction_counts = np.bincount(predictions.images, minlength=image_count)
    match_counts = np.bincount(truth.images[matches != NOBODY], minlength=image_count)
    counting = (prediction_counts > 0) & ((truth_counts > 0) | count_empty)
    empty = (truth_counts == 0) & (np.ones(image_count, bool) if listed is None else listed)
    precision = _average_precision(overlaps, predictions, truth, len(classes))
    return BoxScores(
        classes=tuple(classes),
        truth_counts=truth_counts,
        prediction_counts=prediction_counts,
        match_counts=match_counts,
        precisions=_ratios(match_counts, prediction_counts, counting),
        recalls=_ratios(match_counts, truth_counts, truth_counts > 0),
        found_as=_found_as(matches, predictions.labels, truth.labels, len(classes)),
        matches=matches,
        kept=np.flatnonzero(kept),
        ap_by_class=precision.by_class,
        ap50=precision.at_50,
        ap=precision.over_all,
        empty_frame_accuracy=_mean((prediction_counts[empty] == 0).astype(np.float64)),
    )


def f1(precision: float, recall: float) -> float:
    """The harmonic mean; 0 where nothing was found, also when there were no predictions; NaN without truth."""
    if np.isnan(recall) or recall == 0:
        return float(recall)
    return float(2 * precision * recall / (precision + recall))


def _scoring(predictions: ImageBoxes, min_score: float | None) -> NDArray[np.bool_]:
    if min_score is None:
        return np.ones(len(predictions), bool)
    if predictions.scores is None:
        raise OptionError(f"min_score={min_score} needs predictions with scores, and these have none.")
    enough: NDArray[np.bool_] = predictions.scores >= min_score
    return enough


def _average_precision(overlaps: Overlaps, predictions: ImageBoxes, truth: ImageBoxes, count: int) -> AveragePrecision:
    """NaN for predictions without scores: there is no order to go by."""
    if predictions.scores is None:
        return AveragePrecision(np.full((count, len(IOUS)), np.nan))
    return average_precision(overlaps, predictions.scores, predictions.labels, truth.labels, count)


def _found_as(matches: Numbers, predicted: Numbers, true: Numbers, count: int) -> Numbers:
    """How often each class was found as each; what has no class counts as nothing."""
    wanted, given = np.where(true < 0, count, true), np.where(predicted < 0, count, predicted)
    found = np.where(matches == NOBODY, count, np.append(given, count)[matches])
    alone = np.ones(len(given), bool)
    alone[matches[matches != NOBODY]] = False
    rows = np.concatenate([wanted, np.full(np.count_nonzero(alone), count)])
    columns = np.concatenate([found, given[alone]])
    table = np.bincount(rows * (count + 1) + columns, minlength=(count + 1) ** 2)
    return table.reshape(count + 1, count + 1)


def _ratios(part: Numbers, whole: Numbers, counting: NDArray[np.bool_]) -> Reals:
    ratios = np.full(len(part), np.nan)
    ratios[counting] = part[counting] / whole[counting]
    return ratios


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")


def _mean(values: Reals) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
