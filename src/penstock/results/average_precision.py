"""Average precision by COCO's rule: predictions in order of their score take the best true box that is left.

The curve of precision over recall is made falling, read at 101 recalls and averaged; then the mean over classes with
truth. Unlike COCO's default, no image is cut at its first 100 predictions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.geometry.overlaps import Numbers, Reals
from penstock.results.box_matching import Overlaps

IOUS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0, 1, 101)


class AveragePrecision(NamedTuple):
    """By class and IoU of `IOUS`, NaN for a class without truth."""

    by_class: Reals

    @property
    def at_50(self) -> float:
        return _mean(self.by_class[:, 0])

    @property
    def over_all(self) -> float:
        """The mean over IoU 0.5 to 0.95."""
        return _mean(self.by_class)


def average_precision(
    overlaps: Overlaps, scores: Reals, predicted: Numbers, true: Numbers, class_count: int
) -> AveragePrecision:
    """From overlaps, the scores and class numbers of predictions, and the class numbers of true boxes."""
    order = np.argsort(-scores, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    same = predicted[overlaps.pairs.first] == true[overlaps.pairs.second]
    is_found = _found(overlaps, rank, same)
    found = np.full((class_count, len(IOUS)), np.nan)
    for number in range(class_count):
        truth_count = int(np.count_nonzero(true == number))
        if truth_count:
            mine = order[predicted[order] == number]
            found[number] = [_area(is_found[at, mine], truth_count) for at in range(len(IOUS))]
    return AveragePrecision(found)


def _found(overlaps: Overlaps, rank: Numbers, same: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """For each IoU, which predictions get a true box.

    A prediction that wants a box is sure of it once nobody before it in the order may still want that box; so all
    that are sure take theirs at once, for all images and IoUs together, until nobody is left.
    """
    at, edge = np.nonzero((overlaps.iou[None, :] >= IOUS[:, None]) & same[None, :])
    prediction = at * overlaps.prediction_count + overlaps.pairs.first[edge]
    truth = at * overlaps.truth_count + overlaps.pairs.second[edge]
    place, iou = rank[overlaps.pairs.first[edge]], overlaps.iou[edge]
    is_found = np.zeros(len(IOUS) * overlaps.prediction_count, bool)
    # Of equal boxes the later one is taken, as COCO's own code does.
    order = np.lexsort((-truth, -iou, prediction))
    prediction, truth, place = prediction[order], truth[order], place[order]
    while len(prediction):
        is_favourite = np.diff(prediction, prepend=-1) != 0
        first_place = np.full(int(truth.max()) + 1, np.iinfo(np.int64).max)
        np.minimum.at(first_place, truth, place)
        sure = is_favourite & (place == first_place[truth])
        is_found[prediction[sure]] = True
        gone = np.zeros(len(first_place), bool)
        gone[truth[sure]] = True
        left = ~(is_found[prediction] | gone[truth])
        prediction, truth, place = prediction[left], truth[left], place[left]
    return is_found.reshape(len(IOUS), -1)


def _area(is_found: NDArray[np.bool_], truth_count: int) -> float:
    """The mean precision at the 101 recalls; 0 for those that are never reached."""
    found = np.cumsum(is_found)
    recall = found / truth_count
    precision = found / np.arange(1, len(found) + 1)
    falling = np.append(np.maximum.accumulate(precision[::-1])[::-1], 0.0)
    return float(falling[np.searchsorted(recall, RECALLS)].mean())


def _mean(values: Reals) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
