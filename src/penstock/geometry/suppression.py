"""Non-maximum suppression in a grid: of boxes that overlap too much, the one with the highest score stays.

The answer is that of the plain greedy method: the best box stays, all that overlap it too much go, and so on. Time is
O(n log n) and memory is linear, and the answer does not depend on the order in which the boxes come.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.geometry.overlaps import BoxSet, Numbers, Reals, iou_of, overlapping, overlapping_within
from penstock.wording import counted

# Conflicts that are held for each box. Where boxes lie in piles there are more: then the best are settled first, which
# empties the piles, so that memory stays linear.
CONFLICTS_PER_BOX = 16
FEWEST_AT_ONCE = 1024
# How much fewer are tried where there were too many.
SHRINKING = 8
STAYING, OPEN, SUPPRESSED = 0, 1, 2


class Settled(NamedTuple):
    """Numbers of boxes, best first: those that stay whatever else there is, and those of which that is not known."""

    staying: Numbers
    open: Numbers


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
    return settle(boxes, scores, iou=iou, groups=groups).staying


def settle(
    boxes: NDArray[np.floating],
    scores: NDArray[np.floating],
    *,
    iou: float,
    groups: NDArray[np.integer] | None = None,
    exposed: NDArray[np.bool_] | None = None,
) -> Settled:
    """Suppression of a part of all boxes; `exposed` are those that a box which is not here may still suppress.

    What only such a box suppresses stays open, and so on. All else is settled: what is neither staying nor open is
    suppressed by a box that stays, so that without it the suppression of everything ends the same.
    """
    if not 0 <= iou <= 1:
        raise OptionError(f"iou={iou} must lie from 0 to 1.")
    everything = BoxSet(boxes, groups)
    values = np.asarray(scores, np.float64)
    if values.shape != (len(everything),):
        raise OptionError(f"there are {counted(len(everything), 'box')} and {values.size:,} scores.")
    order = best_first(everything, values)
    ordered = everything.taken(order)
    states = np.where(np.zeros(len(order), bool) if exposed is None else exposed[order], OPEN, STAYING)
    remaining = np.arange(len(order))
    while len(remaining):
        best = _settle_best(ordered, remaining, iou, states)
        rest = remaining[len(best) :]
        for state, others in ((STAYING, SUPPRESSED), (OPEN, OPEN)):
            if len(rest) and (states[best] == state).any():
                hit = rest[_overlapped(ordered.taken(best[states[best] == state]), ordered.taken(rest), iou)]
                states[hit] = others
                rest = rest[states[rest] != SUPPRESSED]
        remaining = rest
    return Settled(order[states == STAYING], order[states == OPEN])


def best_first(boxes: BoxSet, scores: Reals) -> Numbers:
    """An order by falling score that does not depend on how the boxes came: ties go by coordinates, then by group."""
    x1, y1, x2, y2 = boxes.boxes.T
    return np.lexsort((boxes.groups, y2, x2, y1, x1, -scores))


def _settle_best(boxes: BoxSet, remaining: Numbers, iou: float, states: NDArray[np.int64]) -> Numbers:
    """As many of the best as can be settled together, whose states are then final."""
    count, most = len(remaining), CONFLICTS_PER_BOX * len(boxes)
    while True:
        best = remaining[:count]
        conflicts = _conflicts(boxes.taken(best), iou, most if count > FEWEST_AT_ONCE else math.inf)
        if conflicts is not None:
            states[best] = _final(states[best], *conflicts)
            return best
        count = max(FEWEST_AT_ONCE, count // SHRINKING)


def _final(states: NDArray[np.int64], felling: Numbers, felled: Numbers) -> NDArray[np.int64]:
    """The states of boxes in order: whoever still stays when its turn comes fells those behind it, and whoever is open
    leaves them open."""
    sources, starts, counts = np.unique(felling, return_index=True, return_counts=True)
    for source, start, stop in zip(sources.tolist(), starts.tolist(), (starts + counts).tolist(), strict=True):
        behind = felled[start:stop]
        if states[source] == STAYING:
            states[behind] = SUPPRESSED
        elif states[source] == OPEN:
            states[behind[states[behind] == STAYING]] = OPEN
    return states


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
