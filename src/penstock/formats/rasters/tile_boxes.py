"""The boxes of a raster, dealt to its tiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.geometry import Boxes, TileGrid, as_boxes, boxes_on_tiles, place_boxes

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TileBoxes:
    """Boxes in pixels of their tile, in order of tile: those of tile n are starts[n]:starts[n+1].

    `lost` numbers the boxes of the raster that no tile keeps enough of.
    """

    starts: Numbers
    boxes: Boxes
    labels: Numbers
    lost: Numbers

    @classmethod
    def deal(cls, boxes: Boxes, labels: Numbers, grid: TileGrid, *, min_kept: float, assign_lost: bool) -> TileBoxes:
        """Deal boxes of a raster to every tile that keeps enough, lost ones to the tile that holds most of them."""
        placed = place_boxes(boxes, grid, min_kept)
        box, tile = placed.boxes, placed.tiles
        if assign_lost:
            box = np.concatenate([box, placed.lost_boxes])
            tile = np.concatenate([tile, placed.lost_tiles])
        order = np.lexsort((box, tile))
        box, tile = box[order], tile[order]
        starts = np.searchsorted(tile, np.arange(len(grid) + 1))
        return cls(starts, boxes_on_tiles(boxes[box], grid, tile), labels[box], placed.lost_boxes)

    @classmethod
    def none(cls, grid: TileGrid) -> TileBoxes:
        """For a raster of which no boxes are known."""
        nothing = np.zeros(0, np.int64)
        return cls(np.zeros(len(grid) + 1, np.int64), as_boxes([]), nothing, nothing)

    def of(self, number: int) -> tuple[Boxes, Numbers]:
        """Boxes and class numbers of one tile; copies, which the caller may change."""
        here = slice(self.starts[number], self.starts[number + 1])
        return self.boxes[here].copy(), self.labels[here].copy()

    @property
    def counts(self) -> Numbers:
        """How many boxes each tile has."""
        return np.diff(self.starts)
