"""What detection takes from its training data: the size of anchors, and how many maps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.samples import Store
from penstock.tasks.detection.box_data import box_sizes, boxes_field
from penstock.tasks.detection.retina import DEFAULT_SCALE, FEW, MANY, STRIDES, fitted_scale, fitting_share

AUTO = "auto"
MOST_LOST = 0.01  # of the boxes


def fitted_anchors(task: Any, source: Store) -> dict[str, Any]:
    """The anchors that the boxes of the training data need as the network sees them, where the task leaves it open."""
    field = boxes_field(source, task.boxes)
    if field is None or AUTO not in (task.anchor_scale, task.levels):
        return {}
    sizes = box_sizes(source, field) * task.input_scale
    scale = fitted_scale(sizes, STRIDES, STRIDES[:FEW]) if task.anchor_scale == AUTO else float(task.anchor_scale)
    levels = fitted_levels(sizes, scale) if task.levels == AUTO else task.levels
    return {"anchor_scale": scale, "levels": levels}


def fitted_levels(sizes: NDArray[np.floating], scale: float) -> int:
    """Few maps, unless boxes would miss the others: maps whose anchors find nothing in training answer at random."""
    lost = fitting_share(sizes, scale, STRIDES) - fitting_share(sizes, scale, STRIDES[:FEW])
    return FEW if lost <= MOST_LOST else MANY


def anchor_remark(scale: float) -> list[str]:
    """Anchors that are not the usual ones are told."""
    if scale == DEFAULT_SCALE:
        return []
    least, usual = scale * STRIDES[0], DEFAULT_SCALE * STRIDES[0]
    return [
        f"the smallest anchor is {least:g} px instead of {usual:g} px: many boxes of the training data are too small "
        "for the usual ones."
    ]
