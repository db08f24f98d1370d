"""Boxes of windows become boxes of an image: each belongs to the window that owns its centre; then suppression."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.geometry.mosaics import WindowGrid
from penstock.geometry.suppression import settle, suppress
from penstock.prediction.boxes.scenes import WindowPlan
from penstock.tasks.detection.retina import Found

TINY = 1e-6
LARGER_ELSEWHERE = 2.0
# Boxes of windows that may come before what is certain of all of them is settled.
MOST_LOOSE = 200_000


class SceneBoxes(NamedTuple):
    """Boxes of one image, best first: n×4 in its pixels, class numbers, scores."""

    boxes: NDArray[np.float64]
    labels: NDArray[np.int64]
    scores: NDArray[np.float64]

    def taken(self, rows: NDArray[Any]) -> SceneBoxes:
        return SceneBoxes(self.boxes[rows], self.labels[rows], self.scores[rows])


def owned_boxes(plan: WindowPlan, number: int, found: Found) -> SceneBoxes:
    """The boxes of a window in pixels of the image, cut at its border, as far as they belong to this window."""
    window = plan.grid.window(number)
    corners = found.boxes.double().numpy() / plan.factor + np.array([window.x, window.y] * 2, np.float64)
    boxes = np.clip(corners, 0, np.array([plan.width, plan.height] * 2, np.float64))
    every = SceneBoxes(boxes, found.labels.numpy(), found.scores.double().numpy())
    solid = (boxes[:, 2:] > boxes[:, :2]).all(axis=1)
    return every.taken(np.flatnonzero(solid & plan.grid.owned(number, boxes)))


class Mosaic:
    """The boxes of one image, as its windows are answered; the order of windows does not matter.

    A box of a window that is still to come may suppress one that is here, which may have suppressed a third one. So
    only what is certain is settled: in each window, and in all of them together whenever many boxes have come. What is
    left is what one suppression of everything would leave, and memory is that of the answers and of what is open.
    """

    def __init__(self, plan: WindowPlan, task: Any) -> None:
        self._plan, self._task = plan, task
        self._pieces: list[SceneBoxes] = []
        self._finished = np.zeros((len(plan.grid.rows), len(plan.grid.columns)), bool)
        self._settled_count, self._loose_count = 0, 0

    def answered(self, number: int, found: Found) -> SceneBoxes:
        """What a window adds: the answers that belong to it, without those that one of them suppresses for certain."""
        owned = owned_boxes(self._plan, number, found)
        alone = np.zeros_like(self._finished)
        alone.flat[number] = True
        return self._settled(owned.taken(np.flatnonzero(owned.scores >= self._task.score_threshold)), alone)

    def add(self, number: int, piece: SceneBoxes) -> None:
        """Take up what a window adds."""
        self._finished.flat[number] = True
        self._pieces.append(piece)
        self._loose_count += len(piece.scores)
        if self._loose_count > max(MOST_LOOSE, self._settled_count):
            self._pieces = [self._settled(_joined(self._pieces), self._finished)]
            self._settled_count, self._loose_count = len(self._pieces[0].scores), 0

    def boxes(self) -> SceneBoxes:
        """All boxes, best first; now every window is there."""
        everything = _joined(self._pieces)
        options: dict[str, Any] = {"iou": self._task.nms_threshold, "groups": self._groups(everything)}
        return everything.taken(suppress(everything.boxes, everything.scores, **options))

    def _settled(self, found: SceneBoxes, finished: NDArray[np.bool_]) -> SceneBoxes:
        iou = self._task.nms_threshold
        exposed = _exposed(self._plan.grid, finished, found.boxes, iou)
        settled = settle(found.boxes, found.scores, iou=iou, groups=self._groups(found), exposed=exposed)
        return found.taken(np.concatenate(settled))

    def _groups(self, found: SceneBoxes) -> NDArray[np.int64] | None:
        return found.labels if self._task.nms_by_class else None


def _joined(pieces: list[SceneBoxes]) -> SceneBoxes:
    none = SceneBoxes(np.zeros((0, 4)), np.zeros(0, np.int64), np.zeros(0))
    return SceneBoxes(*(np.concatenate(columns) for columns in zip(none, *pieces, strict=True)))


def _exposed(
    grid: WindowGrid, finished: NDArray[np.bool_], boxes: NDArray[np.float64], iou: float
) -> NDArray[np.bool_]:
    """Which boxes one of a window that is not finished could suppress.

    The IoU of two boxes is at most that of their sides along one axis. With sides w and v that is above `iou` only
    where their centres are closer than (w + v) / 2 · (1 − iou) / (1 + iou), and v is below w / iou. Boxes of other
    windows are taken to be at most twice as large as the largest here.
    """
    if not len(boxes):
        return np.zeros(0, bool)
    centres, sides = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
    others = np.minimum(sides / max(iou, TINY), LARGER_ELSEWHERE * sides.max(axis=0))
    reach = (sides + others) / 2 * (1 - iou) / (1 + iou)
    left, top = grid.owners(centres - reach)
    right, bottom = grid.owners(centres + reach)
    missing = np.pad(np.cumsum(np.cumsum(~finished, axis=0), axis=1), ((1, 0), (1, 0)))
    count = missing[bottom + 1, right + 1] - missing[top, right + 1] - missing[bottom + 1, left] + missing[top, left]
    exposed: NDArray[np.bool_] = count > 0
    return exposed
