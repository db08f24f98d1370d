"""Boxes under a view: cut to what is seen, scaled, moved, flipped; those of which nothing is seen are dropped.

Coordinates are kept to 1/256 px. In that grid, up to the largest image, every move and flip is exact in float32, so
that several steps give the same bits one by one as together; only resizing rounds, once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.augment.views import HORIZONTAL, VERTICAL, Views
from penstock.geometry import Boxes

GRID = 256.0


def seen_boxes(boxes: Boxes, views: Views) -> tuple[Boxes, NDArray[np.bool_]]:
    """The boxes of one sample in the pixels of its view, and which of the boxes these are."""
    crop, resized, part = views.crops[0], views.resized[0], views.parts[0]
    corners = _to_grid(boxes.astype(np.float64).reshape(-1, 2, 2))
    corners = np.clip(corners - crop[:2], 0, crop[2:])
    corners = _to_grid(corners * resized / crop[2:])
    corners = np.clip(corners - part[:2], 0, part[2:])
    for axis, bit in enumerate((HORIZONTAL, VERTICAL)):
        if views.flips[0] & bit:
            corners[:, :, axis] = part[2 + axis] - corners[:, ::-1, axis]
    is_seen = (corners[:, 1] > corners[:, 0]).all(axis=1)
    return corners[is_seen].reshape(-1, 4).astype(np.float32), is_seen


def _to_grid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.rint(values * GRID) / GRID
