"""How an image is cut into windows for a network: at its own pixels, or brought to the resolution of the model.

Windows begin at whole strides of the network, as long as pixels are taken as they are; where they are resampled, places
lie between pixels anyhow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.opencv import opencv
from penstock.geometry import TileGrid
from penstock.geometry.mosaics import WindowGrid, windows
from penstock.results.ground_resolution import same_resolution

Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class WindowPlan:
    """The windows of one image in its own pixels, and the side that each has for the network."""

    width: int
    height: int
    grid: WindowGrid
    shown_px: int
    fill: tuple[int, int, int] = (0, 0, 0)  # of what lies beyond the border

    @property
    def factor(self) -> float:
        """Pixels that the network is shown for each of the image."""
        return self.shown_px / self.grid.tile_px

    @property
    def shown_bytes(self) -> int:
        """What a window takes in memory."""
        return 3 * self.shown_px**2

    @cached_property
    def tiles(self) -> TileGrid:
        """The same windows moved back inside of the image, as rasters are read."""
        tile = self.grid.tile_px
        return TileGrid(
            columns=tuple(min(start, max(0, self.width - tile)) for start in self.grid.columns),
            rows=tuple(min(start, max(0, self.height - tile)) for start in self.grid.rows),
            tile_width=min(tile, self.width),
            tile_height=min(tile, self.height),
        )

    def shown(self, number: int, tile: Pixels) -> Pixels:
        """A window as the network is shown it, from the tile that was moved back."""
        row, column = divmod(number, len(self.grid.columns))
        inner = self.tiles.window(number)
        part = tile[self.grid.rows[row] - inner.y :, self.grid.columns[column] - inner.x :]
        side = self.grid.tile_px
        if part.shape[:2] != (side, side):
            part = self._filled(part)
        return part if side == self.shown_px else _resized(part, self.shown_px)

    def _filled(self, part: Pixels) -> Pixels:
        """A part at the border of the image as a whole window."""
        cv2 = opencv()
        down, right = self.grid.tile_px - part.shape[0], self.grid.tile_px - part.shape[1]
        whole: Pixels = cv2.copyMakeBorder(part, 0, down, 0, right, cv2.BORDER_CONSTANT, value=self.fill)
        return whole


def _resized(part: Pixels, side: int) -> Pixels:
    cv2 = opencv()
    how = cv2.INTER_AREA if side < len(part) else cv2.INTER_LINEAR
    resized: Pixels = cv2.resize(part, (side, side), interpolation=how)
    return resized


def window_plan(
    width: int,
    height: int,
    *,
    tile_px: int,
    overlap: float,
    stride: int,
    ratio: float = 1.0,
    fill: tuple[int, int, int] = (0, 0, 0),
) -> WindowPlan:
    """The windows of an image.

    tile_px   side of a window as the network is shown it
    stride    from one place of the network to the next, in pixels that it is shown
    ratio     pixels of the image for each that the network is shown
    """
    ratio = 1.0 if same_resolution(ratio) else ratio
    tile = max(1, round(tile_px * ratio))
    step = stride if ratio == 1 and stride <= tile else 1
    # Up to half of the overlap is given for a whole stride: shorter distances would double the work of long strides.
    distance = max(1, math.floor(tile * (1 - overlap / 2) / step)) * step
    shared = 0.0 if distance == tile else 1 - (distance + 0.5) / tile  # half a pixel, against rounding
    grid = windows(width, height, tile_px=tile, overlap=shared, stride=step)
    return WindowPlan(width, height, grid, tile_px, fill)
