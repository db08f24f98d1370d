"""Windows over an image of any size for prediction, and which of them a detection belongs to.

    windows  |------ 0 ------|
                        |------ 1 ------|            every window is tile_px wide; the last may reach over the border
    owned    ←------ 0 ---→|←--- 1 --→|←---- 2 ---   of what several windows see, the middle of the overlap divides
                                   |------ 2 ------|

Windows begin at multiples of the network's largest stride: then its cells lie on the same pixels in every window, and
a window sees, away from its borders, what a run over the whole image would see.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.errors import RecipeError
from penstock.geometry.boxes import Window


@dataclass(frozen=True)
class WindowGrid:
    """The windows of one image, row by row, without a list of them: where columns and rows begin."""

    columns: range
    rows: range
    tile_px: int

    def __len__(self) -> int:
        return len(self.columns) * len(self.rows)

    def window(self, number: int) -> Window:
        """A square of tile_px; what of it lies outside of the image is padding."""
        row, column = divmod(number, len(self.columns))
        return Window(self.columns[column], self.rows[row], self.tile_px, self.tile_px)

    def owned(self, number: int, boxes: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Which boxes, in pixels of the image, have their centre in the part that belongs to a window.

        The parts of all windows are disjoint and leave nothing out, also beyond the borders.
        """
        row, column = divmod(number, len(self.columns))
        x, y = ((boxes[:, :2].astype(np.float64) + boxes[:, 2:]) / 2).T
        left, right = _part(self.columns, column, self.tile_px)
        top, bottom = _part(self.rows, row, self.tile_px)
        owned: NDArray[np.bool_] = (x >= left) & (x < right) & (y >= top) & (y < bottom)
        return owned


def windows(width: int, height: int, *, tile_px: int, overlap: float, stride: int = 1) -> WindowGrid:
    """The windows that cover an image; neighbours share at least `overlap` of a window, a fraction."""
    if width < 1 or height < 1:
        raise RecipeError(f"an image of {width}×{height} px has no windows.")
    if stride < 1 or tile_px < stride:
        raise RecipeError(f"tile_px={tile_px} must be at least {max(1, stride)}, the largest stride of the network.")
    if not 0 <= overlap < 1:
        raise RecipeError(f"overlap={overlap} must be a fraction from 0 to below 1, such as 0.05.")
    step = max(stride, int(tile_px * (1 - overlap)) // stride * stride)
    return WindowGrid(_starts(width, tile_px, step), _starts(height, tile_px, step), tile_px)


def _starts(length: int, tile_px: int, step: int) -> range:
    count = 1 + max(0, -(-(length - tile_px) // step))
    return range(0, count * step, step)


def _part(starts: range, place: int, tile_px: int) -> tuple[float, float]:
    """What belongs to a window along one axis: up to the middle of what it shares with its neighbours."""
    low = -np.inf if place == 0 else (starts[place - 1] + tile_px + starts[place]) / 2
    high = np.inf if place == len(starts) - 1 else (starts[place] + tile_px + starts[place + 1]) / 2
    return low, high
