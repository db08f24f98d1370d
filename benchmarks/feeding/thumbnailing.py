"""Crop with padding and flip of a batch of small raw images in numpy; runs in the environments of peers."""

from __future__ import annotations

from typing import Any

import numpy as np

SIDE, PADDING, CLASSES = 32, 4, 10


def batch_of(pixels: Any, indices: Any, rng: Any) -> Any:
    """Rows and columns of each image as two index arrays: a flip is a column array that runs backwards."""
    count = len(indices)
    padded = np.zeros((count, SIDE + 2 * PADDING, SIDE + 2 * PADDING, 3), np.uint8)
    padded[:, PADDING:-PADDING, PADDING:-PADDING] = pixels[indices]
    corners = rng.integers(0, 2 * PADDING + 1, (2, count, 1))
    along = np.arange(SIDE)
    columns = np.where(rng.random((count, 1)) < 0.5, along[::-1], along) + corners[1]
    rows = along + corners[0]
    return padded[np.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]
