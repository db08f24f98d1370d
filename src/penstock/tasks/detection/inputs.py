"""From images of a batch to what a network takes: normalised, at its scale, on one canvas.

A canvas is a multiple of 32 px, so that a map's places lie on whole strides; what it has beyond the image is zero,
which is the mean of all images.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import interpolate, pad

from penstock.augment.pixelwise import Channels
from penstock.tasks.device_pixels import normalised

CANVAS_STEP = 32


def as_list(images: Any) -> list[torch.Tensor]:
    """The images of a batch, which come as one tensor where all have one size."""
    return list(images.unbind(0)) if isinstance(images, torch.Tensor) else list(images)


def rows_by_size(images: Any) -> list[list[int]]:
    """Rows of images of the same size, so that no image is padded for another one's sake."""
    if isinstance(images, torch.Tensor):
        return [list(range(len(images)))] if len(images) else []
    found: dict[tuple[int, ...], list[int]] = {}
    for row, image in enumerate(images):
        found.setdefault(tuple(image.shape), []).append(row)
    return list(found.values())


def canvas(images: Any, mean: Channels, std: Channels, scale: float) -> torch.Tensor:
    """N×3×H×W of images of any sizes, H×W×3 each, all in the size of the largest."""
    if isinstance(images, torch.Tensor):
        return _on_canvas(_scaled(normalised(images, mean, std), scale), None)
    pieces = [_scaled(normalised(image[None], mean, std), scale) for image in images]
    height, width = (max(piece.shape[axis] for piece in pieces) for axis in (2, 3))
    return torch.cat([_on_canvas(piece, (height, width)) for piece in pieces])


def _scaled(pixels: torch.Tensor, scale: float) -> torch.Tensor:
    if scale == 1.0:
        return pixels
    size = [max(1, round(side * scale)) for side in pixels.shape[2:]]
    return interpolate(pixels, size=size, mode="bilinear", align_corners=False, antialias=scale < 1)


def _on_canvas(pixels: torch.Tensor, size: Sequence[int] | None) -> torch.Tensor:
    height, width = pixels.shape[2:] if size is None else size
    down = math.ceil(height / CANVAS_STEP) * CANVAS_STEP - pixels.shape[2]
    right = math.ceil(width / CANVAS_STEP) * CANVAS_STEP - pixels.shape[3]
    return pad(pixels, (0, right, 0, down)) if down or right else pixels
