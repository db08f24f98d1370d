"""Boxes as arrays in pixels, x1 y1 x2 y2 in float32; windows of whole pixels; sizes as users write them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError

Boxes = NDArray[np.float32]

# The most that a JPEG can hold along a side.
LARGEST_SIDE = 65500


class Window(NamedTuple):
    """A rectangle of whole pixels."""

    x: int
    y: int
    width: int
    height: int


def as_boxes(values: object) -> Boxes:
    """Any sequence of four numbers each as an n×4 float32 array; nothing gives 0×4."""
    return np.asarray(values, dtype=np.float32).reshape(-1, 4)


def areas(boxes: NDArray[np.floating]) -> NDArray[np.float64]:
    """The area of each box, in float64 so that large rasters do not round it away."""
    wide = boxes.astype(np.float64)
    return np.maximum(wide[:, 2] - wide[:, 0], 0) * np.maximum(wide[:, 3] - wide[:, 1], 0)


def clipped(boxes: Boxes, window: Window) -> Boxes:
    """The part of each box inside a window, still in the coordinates of the whole."""
    low = np.array([window.x, window.y] * 2, np.float32)
    high = np.array([window.x + window.width, window.y + window.height] * 2, np.float32)
    return np.clip(boxes, low, high)


def scaled(boxes: Boxes, x_factor: float, y_factor: float) -> Boxes:
    return boxes * np.array([x_factor, y_factor, x_factor, y_factor], np.float32)


def parse_size(text: str | tuple[int, int]) -> tuple[int, int]:
    """`WIDTHxHEIGHT` as (width, height)."""
    if not isinstance(text, str):
        width, height = text
    else:
        pieces = text.lower().replace("×", "x").split("x")
        if len(pieces) != 2 or not all(piece.strip().isdecimal() for piece in pieces):
            raise OptionError(f"size {text!r} is not WIDTHxHEIGHT, such as 224x224.")
        width, height = (int(piece) for piece in pieces)
    if not (1 <= width <= LARGEST_SIDE and 1 <= height <= LARGEST_SIDE):
        raise OptionError(f"size {width}x{height} must lie between 1x1 and {LARGEST_SIDE}x{LARGEST_SIDE}.")
    return int(width), int(height)
