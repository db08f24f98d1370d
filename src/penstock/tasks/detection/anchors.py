"""Anchors: the boxes that a network begins from, nine at every place of every map, and how they fit the data.

The smallest is `scale` strides wide, four by default; on each map there are three sizes, a third of an octave apart, in
three proportions. Places are counted from the corner of the image by whole strides, so that a shifted window gives
shifted anchors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

DEFAULT_SCALE = 4.0
RATIOS = (0.5, 1.0, 2.0)  # height divided by width
STEPS = (1.0, 2 ** (1 / 3), 2 ** (2 / 3))
PER_PLACE = len(RATIOS) * len(STEPS)
# Scales that are tried where the default fits badly: half octaves down to boxes of 8 px and up to the double.
SCALES = tuple(float(f"{2 ** (half / 2):.3g}") for half in range(7))
# An anchor with less IoU than this is no match of a box, whatever its place.
FITTING_IOU = 0.5
# Where this share of boxes has a fitting anchor, nothing is changed: trained heads keep their meaning.
ENOUGH = 0.9
NEARLY = 0.02


def cell_anchors(stride: int, scale: float) -> torch.Tensor:
    """The anchors of one place, around 0, in whole pixels as torchvision has them."""
    sizes = torch.tensor([int(scale * stride * step) for step in STEPS], dtype=torch.float32)
    heights = torch.tensor(RATIOS).sqrt()
    wide, high = ((ratio[:, None] * sizes).flatten() for ratio in (1 / heights, heights))
    return (torch.stack([-wide, -high, wide, high], dim=1) / 2).round()


def grid_anchors(height: int, width: int, stride: int, scale: float, device: Any) -> torch.Tensor:
    """All anchors of a map, place by place, row by row."""
    xs, ys = (torch.arange(count, device=device, dtype=torch.float32) * stride for count in (width, height))
    down, across = torch.meshgrid(ys, xs, indexing="ij")
    places = torch.stack([across, down, across, down], dim=2).reshape(-1, 1, 4)
    return (places + cell_anchors(stride, scale).to(device)).reshape(-1, 4)


def fitting_share(sizes: NDArray[np.floating], scale: float, strides: tuple[int, ...]) -> float:
    """The share of boxes (n×2: width, height) for which an anchor of another place would have an IoU of 0.5."""
    shapes = np.concatenate([cell_anchors(stride, scale).numpy() for stride in strides])
    anchors = shapes[:, 2:] - shapes[:, :2]
    return float((_shape_iou(sizes, anchors).max(axis=1) >= FITTING_IOU).mean()) if len(sizes) else 1.0


def _shape_iou(sizes: NDArray[np.floating], anchors: NDArray[np.floating]) -> NDArray[np.floating]:
    shared = np.minimum(sizes[:, None], anchors[None]).prod(axis=2)
    ratio: NDArray[np.floating] = shared / (sizes.prod(axis=1)[:, None] + anchors.prod(axis=1)[None] - shared)
    return ratio


def fitted_scale(sizes: NDArray[np.floating], strides: tuple[int, ...], fewer: tuple[int, ...]) -> float:
    """The default, unless many boxes have no anchor of their size.

    Then, of the scales that nearly all boxes fit which fit any, the one with which they need the coarse maps least.
    """
    if fitting_share(sizes, DEFAULT_SCALE, strides) >= ENOUGH:
        return DEFAULT_SCALE
    shares = {scale: fitting_share(sizes, scale, strides) for scale in SCALES}
    good = [scale for scale, share in shares.items() if share >= max(shares.values()) - NEARLY]
    return max(good, key=lambda scale: (fitting_share(sizes, scale, fewer), -abs(math.log(scale / DEFAULT_SCALE))))
