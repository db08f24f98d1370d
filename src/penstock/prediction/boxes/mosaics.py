"""Boxes of windows become boxes of an image: each belongs to the window that owns its centre; then suppression."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.geometry.suppression import suppress
from penstock.prediction.boxes.window_plans import WindowPlan
from penstock.tasks.detection.answers import Found


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


def suppressed_boxes(found: SceneBoxes, task: Any) -> SceneBoxes:
    """Of boxes that overlap too much the best, as the task says it."""
    groups = found.labels if task.nms_by_class else None
    return found.taken(suppress(found.boxes, found.scores, iou=task.nms_threshold, groups=groups))


def answered_boxes(plan: WindowPlan, number: int, found: Found, task: Any) -> SceneBoxes:
    """What a window adds to its image: the answers that belong to it, the best of those that overlap."""
    owned = owned_boxes(plan, number, found)
    return suppressed_boxes(owned.taken(np.flatnonzero(owned.scores >= task.score_threshold)), task)


def mosaic(pieces: Iterable[SceneBoxes], task: Any) -> SceneBoxes:
    """The boxes of an image from those of its windows, whatever the order in which these come."""
    none = SceneBoxes(np.zeros((0, 4)), np.zeros(0, np.int64), np.zeros(0))
    joined = SceneBoxes(*(np.concatenate(columns) for columns in zip(none, *pieces, strict=True)))
    return suppressed_boxes(joined, task)
