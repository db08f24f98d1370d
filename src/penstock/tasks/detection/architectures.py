"""The networks of detection by name; all have a backbone, and the same losses and candidates."""

from __future__ import annotations

from torch import nn

from penstock.tasks.detection.faster import FasterDetector
from penstock.tasks.detection.retina import DEFAULT_SCALE, RetinaDetector

DETECTORS: dict[str, type[RetinaDetector | FasterDetector]] = {
    "retinanet": RetinaDetector,
    "faster_rcnn": FasterDetector,
}


def made_detector(
    architecture: str, backbone: str, class_count: int, *, levels: int, anchor_scale: float | None, frozen_norm: bool
) -> nn.Module:
    """A network with random weights; without a scale its anchors are the usual ones."""
    scale = DEFAULT_SCALE if anchor_scale is None else anchor_scale
    return DETECTORS[architecture](backbone, class_count, levels=levels, anchor_scale=scale, frozen_norm=frozen_norm)
