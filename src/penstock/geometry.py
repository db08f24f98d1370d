"""Boxes and tiles: pure functions on arrays, in pixels, with x1 y1 x2 y2 in float32."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import RecipeError

Boxes = NDArray[np.float32]


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


def translated(boxes: Boxes, dx: float, dy: float) -> Boxes:
    return boxes + np.array([dx, dy, dx, dy], np.float32)


def scaled(boxes: Boxes, x_factor: float, y_factor: float) -> Boxes:
    return boxes * np.array([x_factor, y_factor, x_factor, y_factor], np.float32)


def tile_starts(length: int, tile_px: int, overlap: float) -> list[int]:
    """Where tiles begin along one axis; the last is shifted back inside, never padded.

    >>> tile_starts(400, 300, 0.25)
    [0, 100]
    """
    if tile_px < 1:
        raise RecipeError(f"tile_px={tile_px} must be at least 1.")
    if not 0 <= overlap < 1:
        raise RecipeError(f"overlap={overlap} must be a fraction from 0 to below 1, such as 0.05.")
    if length <= tile_px:
        return [0]
    stride = max(1, tile_px - int(tile_px * overlap))
    starts = list(range(0, length - tile_px + 1, stride))
    if starts[-1] + tile_px < length:
        starts.append(length - tile_px)
    return starts


def tiles(width: int, height: int, tile_px: int, overlap: float) -> list[Window]:
    """The tiles of an image, row by row; an image smaller than a tile is one smaller tile."""
    columns = tile_starts(width, tile_px, overlap)
    rows = tile_starts(height, tile_px, overlap)
    tile_width, tile_height = min(tile_px, width), min(tile_px, height)
    return [Window(x, y, tile_width, tile_height) for y in rows for x in columns]


def parse_size(text: str | tuple[int, int]) -> tuple[int, int]:
    """`WIDTHxHEIGHT` as (width, height)."""
    if not isinstance(text, str):
        width, height = text
    else:
        pieces = text.lower().replace("×", "x").split("x")
        if len(pieces) != 2 or not all(piece.strip().isdecimal() for piece in pieces):
            raise RecipeError(f"size {text!r} is not WIDTHxHEIGHT, such as 224x224.")
        width, height = (int(piece) for piece in pieces)
    if width < 1 or height < 1:
        raise RecipeError(f"size {width}x{height} must be at least 1x1.")
    return int(width), int(height)
