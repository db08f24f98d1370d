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

from penstock.errors import OptionError
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

    def owners(self, points: NDArray[np.floating]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Column and row of the window that each point, n×2 in pixels of the image, belongs to."""
        across, down = (_borders(starts, self.tile_px) for starts in (self.columns, self.rows))
        return np.searchsorted(across, points[:, 0], "right"), np.searchsorted(down, points[:, 1], "right")

    def owned(self, number: int, boxes: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Which boxes, in pixels of the image, have their centre in the part that belongs to a window.

        The parts of all windows are disjoint and leave nothing out, also beyond the borders.
        """
        row, column = divmod(number, len(self.columns))
        across, down = self.owners((boxes[:, :2].astype(np.float64) + boxes[:, 2:]) / 2)
        owned: NDArray[np.bool_] = (across == column) & (down == row)
        return owned


def windows(width: int, height: int, *, tile_px: int, overlap: float, stride: int = 1) -> WindowGrid:
    """The windows that cover an image; neighbours share at least `overlap` of a window, a fraction."""
    if width < 1 or height < 1:
        raise OptionError(f"an image of {width}×{height} px has no windows.")
    if stride < 1 or tile_px < stride:
        raise OptionError(f"tile_px={tile_px} must be at least {max(1, stride)}, the largest stride of the network.")
    if not 0 <= overlap < 1:
        raise OptionError(f"overlap={overlap} must be a fraction from 0 to below 1, such as 0.05.")
    step = max(stride, int(tile_px * (1 - overlap)) // stride * stride)
    return WindowGrid(_starts(width, tile_px, step), _starts(height, tile_px, step), tile_px)


def _starts(length: int, tile_px: int, step: int) -> range:
    count = 1 + max(0, -(-(length - tile_px) // step))
    return range(0, count * step, step)


def _borders(starts: range, tile_px: int) -> NDArray[np.float64]:
    """Where along one axis the next window owns what there is: the middle of what two neighbours share."""
    first = np.array(starts, np.float64)
    return (first[:-1] + tile_px + first[1:]) / 2
