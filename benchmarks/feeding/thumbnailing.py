"""Crop with padding and flip of a batch of small raw images in numpy; runs in the environments of peers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

SIDE, PADDING, CLASSES = 32, 4, 10


def batch_of(pixels: Any, indices: Any, rng: Any) -> Any:
    """Every crop of every image as one strided view, of which each image takes one; then half of them flipped."""
    count, places = len(indices), 2 * PADDING + 1
    padded = np.zeros((count, SIDE + 2 * PADDING, SIDE + 2 * PADDING, 3), np.uint8)
    padded[:, PADDING:-PADDING, PADDING:-PADDING] = pixels[indices]
    y, x = rng.integers(0, places, (2, count))
    image, row, column, level = padded.strides
    crops = as_strided(padded, (count, places, places, SIDE, 3 * SIDE), (image, row, column, row, level))
    chosen = crops[np.arange(count), y, x].reshape(count, SIDE, SIDE, 3)
    flipped = np.flatnonzero(rng.random(count) < 0.5)
    chosen[flipped] = chosen[flipped, :, ::-1]
    return chosen
