"""Arrays of pixels in the shapes that people store them in, as H×W×3 RGB."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from penstock.formats.columns.tables import Holds

Order = Literal["hw", "hwc", "chw"]
CHANNEL_COUNTS = (1, 3, 4)


def pixel_order(holds: Holds, layout: str) -> Order | None:
    """How the axes of an image stand; None where this is not an image of 8 bits.

    Two axes are a grey image. With three, channels are the last one if it has 1, 3 or 4, else the first one if that
    has; `layout` says it where both could be meant.
    """
    if holds.what != "array" or holds.dtype != "uint8" or 0 in holds.shape:
        return None
    if len(holds.shape) == 2:
        return "hw"
    if len(holds.shape) != 3:
        return None
    if layout != "chw" and holds.shape[2] in CHANNEL_COUNTS:
        return "hwc"
    return "chw" if layout != "hwc" and holds.shape[0] in CHANNEL_COUNTS else None


def as_rgb(pixels: NDArray[Any], order: Order, channels: str) -> NDArray[np.uint8]:
    """H×W×3: grey thrice, alpha left out."""
    if order == "chw":
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim == 2 or pixels.shape[2] == 1:
        return np.repeat(pixels.reshape(*pixels.shape[:2], 1), 3, axis=2)
    rgb = pixels[:, :, :3]
    return np.ascontiguousarray(rgb[:, :, ::-1] if channels == "bgr" else rgb)


def size_of(holds: Holds, order: Order) -> tuple[int, int] | None:
    """Width and height, where the column says them."""
    height, width = holds.shape[1:] if order == "chw" else holds.shape[:2]
    return None if height is None or width is None else (width, height)
