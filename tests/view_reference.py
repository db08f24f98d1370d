"""What a view shows, the obvious way: crop, resize, pad, slice, flip."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.augment.views import Views
from penstock.codecs.kernel.resampling import Axis, Span, resampled


def seen(image: NDArray[np.uint8], views: Views, row: int = 0) -> NDArray[np.uint8]:
    """What one of the views shows of H×W×3 pixels."""
    x, y, width, height = views.crops[row].tolist()
    assert 0 <= x <= image.shape[1] - width and 0 <= y <= image.shape[0] - height and width > 0 and height > 0
    whole = image[y : y + height, x : x + width]
    new_width, new_height = views.resized[row].tolist()
    if (new_width, new_height) != (width, height):
        across = Axis.of(Span(x, width), new_width, 0, new_width)
        whole = resampled(image, across, Axis.of(Span(y, height), new_height, 0, new_height))
    return flipped(part_of(whole, views.parts[row].tolist(), views.fill), int(views.flips[row]))


def part_of(image: NDArray[Any], part: list[int], fill: int) -> NDArray[Any]:
    """A window that may reach outside, pixel by pixel."""
    x, y, width, height = part
    out = np.full((height, width, *image.shape[2:]), fill, image.dtype)
    for row in range(max(0, -y), min(height, image.shape[0] - y)):
        for column in range(max(0, -x), min(width, image.shape[1] - x)):
            out[row, column] = image[y + row, x + column]
    return out


def flipped(image: NDArray[Any], flip: int) -> NDArray[Any]:
    if flip & 1:
        image = image[:, ::-1]
    return image[::-1] if flip & 2 else image


def picture(width: int, height: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
