"""Non-maximum suppression in a grid: of boxes that overlap too much, the one with the highest score stays.

The answer is that of the plain greedy method: the best box stays, all that overlap it too much go, and so on. Time is
O(n log n) and memory is linear, and the answer does not depend on the order in which the boxes come.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from penstock.errors import RecipeError
from penstock.geometry.overlaps import BoxSet, Numbers, Reals, iou_of, overlapping, overlapping_within

# Conflicts that are held for each box. Where boxes lie in piles there are more: then the best are settled first, which
# empties the piles, so that memory stays linear.
CONFLICTS_PER_BOX = 16
FEWEST_AT_ONCE = 1024
# How much fewer are tried where there were too many.
SHRINKING = 8


def suppress(
    boxes: NDArray[np.floating],
    scores: NDArray[np.floating],
    *,
    iou: float,
    groups: NDArray[np.integer] | None = None,
) -> Numbers:
    """The numbers of the boxes that stay, best first: no two of one group have an IoU above `iou`.

    `groups` may be classes, for suppression within each class; without, every box meets every other. Among equal scores
    the smaller coordinates win, so the same boxes in another order leave the same boxes.
    """
    if not 0 <= iou <= 1:
        raise RecipeError(f"iou={iou} must lie from 0 to 1.")
    everything = BoxSet(boxes, groups)
    values = np.asarray(scores, np.float64)
    if values.shape != (len(everything),):
        raise RecipeError(f"there are {len(everything):,} boxes and {values.size:,} scores.")
    order = best_first(everything, values)
    ordered = everything.taken(order)
    kept: list[Numbers] = []
    remaining = np.arange(len(order))
    while len(remaining):
        best, standing = _settled_best(ordered, remaining, iou)
        staying, rest = best[standing], remaining[len(best) :]
        kept.append(staying)
        remaining = rest[~_overlapped(ordered.taken(staying), ordered.taken(rest), iou)] if len(rest) else rest
    return order[np.concatenate(kept)] if kept else order


def best_first(boxes: BoxSet, scores: Reals) -> Numbers:
    """An order by falling score that does not depend on how the boxes came: ties go by coordinates, then by group."""
    x1, y1, x2, y2 = boxes.boxes.T
    return np.lexsort((boxes.groups, y2, x2, y1, x1, -scores))


def _settled_best(boxes: BoxSet, remaining: Numbers, iou: float) -> tuple[Numbers, NDArray[np.bool_]]:
    """As many of the best as can be settled together, and which of them stay."""
    count, most = len(remaining), CONFLICTS_PER_BOX * len(boxes)
    while True:
        best = remaining[:count]
        conflicts = _conflicts(boxes.taken(best), iou, most if count > FEWEST_AT_ONCE else math.inf)
        if conflicts is not None:
            return best, _standing(count, *conflicts)
        count = max(FEWEST_AT_ONCE, count // SHRINKING)


def _standing(count: int, felling: Numbers, felled: Numbers) -> NDArray[np.bool_]:
    """Which boxes stay, of boxes in order: whoever still stands when its turn comes fells those behind it."""
    standing = np.ones(count, bool)
    sources, starts, counts = np.unique(felling, return_index=True, return_counts=True)
    for source, start, stop in zip(sources.tolist(), starts.tolist(), (starts + counts).tolist(), strict=True):
        if standing[source]:
            standing[felled[start:stop]] = False
    return standing


def _conflicts(boxes: BoxSet, iou: float, most: float) -> tuple[Numbers, Numbers] | None:
    """Pairs that overlap too much, the better one first, sorted by it; None where there are more than can be held."""
    areas = boxes.areas
    first, second, count = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
    for pairs in overlapping_within(boxes, above_iou=iou):
        much = iou_of(pairs, areas, areas) > iou
        one, other = pairs.first[much], pairs.second[much]
        first.append(np.minimum(one, other))
        second.append(np.maximum(one, other))
        count += len(one)
        if count > most:
            return None
    better = np.concatenate(first)
    order = np.argsort(better, kind="stable")
    return better[order], np.concatenate(second)[order]


def _overlapped(staying: BoxSet, others: BoxSet, iou: float) -> NDArray[np.bool_]:
    """Which of the others overlap one that stays too much."""
    hit = np.zeros(len(others), bool)
    staying_areas, other_areas = staying.areas, others.areas
    for pairs in overlapping(staying, others, above_iou=iou):
        hit[pairs.second[iou_of(pairs, staying_areas, other_areas) > iou]] = True
    return hit
