"""Tiles of images, and which box lies on which of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.geometry.boxes import Boxes, Window, areas


def tile_starts(length: int, tile_px: int, overlap: float) -> list[int]:
    """Where tiles begin along one axis; the last is shifted back inside, never padded.

    >>> tile_starts(400, 300, 0.25)
    [0, 100]
    """
    if tile_px < 1:
        raise OptionError(f"tile_px={tile_px} must be at least 1.")
    if not 0 <= overlap < 1:
        raise OptionError(f"overlap={overlap} must be a fraction from 0 to below 1, such as 0.05.")
    if length <= tile_px:
        return [0]
    stride = max(1, tile_px - int(tile_px * overlap))
    starts = list(range(0, length - tile_px + 1, stride))
    if starts[-1] + tile_px < length:
        starts.append(length - tile_px)
    return starts


def tiles(width: int, height: int, tile_px: int, overlap: float) -> list[Window]:
    """The tiles of an image, row by row; an image smaller than a tile is one smaller tile."""
    grid = TileGrid.over(width, height, tile_px, overlap)
    return [grid.window(number) for number in range(len(grid))]


@dataclass(frozen=True)
class TileGrid:
    """The tiles of one image without a list of them: where columns and rows begin, and how large a tile is."""

    columns: tuple[int, ...]
    rows: tuple[int, ...]
    tile_width: int
    tile_height: int

    @classmethod
    def over(cls, width: int, height: int, tile_px: int, overlap: float) -> TileGrid:
        return cls(
            columns=tuple(tile_starts(width, tile_px, overlap)),
            rows=tuple(tile_starts(height, tile_px, overlap)),
            tile_width=min(tile_px, width),
            tile_height=min(tile_px, height),
        )

    def __len__(self) -> int:
        return len(self.columns) * len(self.rows)

    def guard(self, number: int) -> int:
        """How many tiles from this one on may share a pixel with one of those before it."""
        row = max(0, number - 1) // len(self.columns)
        starts = np.array(self.rows)
        sharing = int((starts[row + 1 :] < starts[row] + self.tile_height).sum())
        # A row may be divided when its tiles share nothing with one another, nor with the rows beside it.
        alone = row == 0 or starts[row] >= starts[row - 1] + self.tile_height
        apart = bool((np.diff(self.columns) >= self.tile_width).all())
        if alone and apart and not sharing:
            return 0
        return max(0, len(self.columns) * (row + 1 + sharing) - number)

    def window(self, number: int) -> Window:
        row, column = divmod(number, len(self.columns))
        return Window(self.columns[column], self.rows[row], self.tile_width, self.tile_height)

    def corners(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The x and y where each of these tiles begins, as n×2."""
        row, column = np.divmod(numbers, len(self.columns))
        return np.stack([np.asarray(self.columns)[column], np.asarray(self.rows)[row]], axis=1)


class Placement(NamedTuple):
    """Which box lies on which tile, as pairs; and each box that no tile keeps, with the tile that holds most of it."""

    boxes: NDArray[np.int64]
    tiles: NDArray[np.int64]
    lost_boxes: NDArray[np.int64]
    lost_tiles: NDArray[np.int64]


# Pairs of box and tile that are looked at together: about 100 MB of temporary arrays.
_PAIRS_AT_ONCE = 1 << 20


def place_boxes(boxes: Boxes, grid: TileGrid, min_kept: float) -> Placement:
    """Put each box on every tile that keeps more than `min_kept` of its area.

    Boxes without area, and those outside of all tiles, appear nowhere.
    """
    if not 0 <= min_kept < 1:
        raise OptionError(f"min_kept={min_kept} must be a fraction from 0 to below 1, such as 0.5.")
    reach = _Reach.of(boxes, grid)
    chunks = [_place_some(boxes, grid, reach, some, min_kept) for some in _in_chunks(reach.counts)]
    if not chunks:
        return Placement(*(np.zeros(0, np.int64) for _ in range(4)))
    return Placement(*(np.concatenate(pieces) for pieces in zip(*chunks, strict=True)))


def boxes_on_tiles(boxes: Boxes, grid: TileGrid, numbers: NDArray[np.int64]) -> Boxes:
    """Each box clipped to the tile of the same place, in pixels of that tile."""
    low = np.tile(grid.corners(numbers), 2).astype(np.float32)
    size = np.array([grid.tile_width, grid.tile_height] * 2, np.float32)
    return (np.clip(boxes, low, low + size) - low).astype(np.float32)


class _Reach(NamedTuple):
    """The columns and rows of tiles that each box touches: along an axis they are always neighbours."""

    first_column: NDArray[np.int64]
    column_count: NDArray[np.int64]
    first_row: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, boxes: Boxes, grid: TileGrid) -> _Reach:
        first_column, column_count = _touched(boxes[:, 0], boxes[:, 2], grid.columns, grid.tile_width)
        first_row, row_count = _touched(boxes[:, 1], boxes[:, 3], grid.rows, grid.tile_height)
        counts = np.where(areas(boxes) > 0, column_count * row_count, 0)
        return cls(first_column, column_count, first_row, counts)


def _touched(
    low: NDArray[np.float32], high: NDArray[np.float32], starts: tuple[int, ...], length: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    begins = np.asarray(starts, np.float64)
    first = np.searchsorted(begins + length, low, side="right")
    stop = np.searchsorted(begins, high, side="left")
    return first, np.maximum(stop - first, 0)


def _in_chunks(counts: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """The numbers of the boxes that touch anything, so many at a time that their pairs fit into memory."""
    touching = np.flatnonzero(counts)
    chunk = np.cumsum(counts[touching]) // _PAIRS_AT_ONCE
    return iter(np.split(touching, np.flatnonzero(np.diff(chunk)) + 1) if len(touching) else [])


def _place_some(boxes: Boxes, grid: TileGrid, reach: _Reach, some: NDArray[np.int64], min_kept: float) -> Placement:
    counts = reach.counts[some]
    starts = np.cumsum(counts) - counts
    which = np.repeat(np.arange(len(some)), counts)
    box = some[which]
    row, column = np.divmod(np.arange(len(which)) - starts[which], reach.column_count[box])
    tile = (reach.first_row[box] + row) * len(grid.columns) + reach.first_column[box] + column
    share = areas(boxes_on_tiles(boxes[box], grid, tile)) / areas(boxes[box])
    kept = share > min_kept
    alone = ~np.logical_or.reduceat(kept, starts)
    most = alone[which] & (share == np.maximum.reduceat(share, starts)[which])
    lost, first = np.unique(which[most], return_index=True)
    return Placement(box[kept], tile[kept], some[lost], tile[most][first])
