"""Pixels of uncompressed GeoTIFFs, copied from the file as they lie there.

Nothing is to be decoded. Through GDAL such pixels would pass its cache, with their bands apart, and be put together
again: three quarters of the work. Rows of strips are read into their place; what a window has of tiles is copied from
the mapped file, which is let go after each window, so that its pages do not count as memory for longer.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs import tiff
from penstock.codecs.headers import UnreadableImage
from penstock.geometry import Window
from penstock.sources.rasters.raster_pixels import TilePixels

Pixels = NDArray[np.uint8]
CHANNELS = 3


def empty_plain(width: int, height: int) -> TilePixels:
    """Memory for red, green and blue bytes, side by side."""
    return TilePixels(np.empty((height, width, CHANNELS), np.uint8).transpose(2, 0, 1), None)


@dataclass(frozen=True, eq=False)
class PlainBlocks:
    """Where the blocks of a raster begin in its file, a row of them after the other."""

    path: Path
    block_width: int
    block_height: int
    is_striped: bool
    offsets: NDArray[np.int64]

    @property
    def _row_bytes(self) -> int:
        return self.block_width * CHANNELS

    @property
    def _block_bytes(self) -> int:
        return self.block_height * self._row_bytes

    def read(self, window: Window, out: TilePixels | None = None) -> TilePixels:
        """The pixels of a window, into `out` where that is given; UnreadableImage on damage."""
        into = empty_plain(window.width, window.height) if out is None else out
        image = into.pixels.transpose(1, 2, 0)
        try:
            with self.path.open("rb", buffering=0) as file:
                if self.is_striped:
                    self._read_strips(file, window, image)
                else:
                    self._copy_tiles(file, window, image)
        except OSError as error:
            raise UnreadableImage(f"{self.path.name} cannot be read ({error})") from error
        return into

    def _rows_of_blocks(self, window: Window) -> Iterator[tuple[int, int]]:
        """Rows of the window, the first and the stop, that lie in one row of blocks."""
        y, end = window.y, window.y + window.height
        while y < end:
            stop = min(end, (y // self.block_height + 1) * self.block_height)
            yield y, stop
            y = stop

    def _read_strips(self, file: FileIO, window: Window, image: Pixels) -> None:
        for y, stop in self._rows_of_blocks(window):
            self._read_strip(file, y, window.x, image[y - window.y : stop - window.y])

    def _copy_tiles(self, file: FileIO, window: Window, image: Pixels) -> None:
        if not file.seek(0, os.SEEK_END):
            raise UnreadableImage(f"{self.path.name} became empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for y, stop in self._rows_of_blocks(window):
                self._copy_row(data, y, window.x, image[y - window.y : stop - window.y])

    def _read_strip(self, file: FileIO, y: int, x: int, out: Pixels) -> None:
        number, above = divmod(y, self.block_height)
        start = int(self.offsets[number, 0]) + above * self._row_bytes
        if out.shape[1] == self.block_width:
            self._fill(file, start, out)
            return
        for row, pixels in enumerate(out):
            self._fill(file, start + row * self._row_bytes + x * CHANNELS, pixels)

    def _copy_row(self, data: mmap.mmap, y: int, x: int, out: Pixels) -> None:
        number, above = divmod(y, self.block_height)
        first, stop = x // self.block_width, -(-(x + out.shape[1]) // self.block_width)
        for place in range(first, stop):
            left = place * self.block_width - x
            part = out[:, max(0, left) : left + self.block_width]
            self._copy(data, number, place, (above, max(0, -left)), part)

    def _copy(self, data: mmap.mmap, number: int, place: int, corner: tuple[int, int], out: Pixels) -> None:
        """What follows a corner, row and column, of a tile; nothing refers to the mapped file afterwards."""
        offset = int(self.offsets[number, place])
        if offset + self._block_bytes > len(data):
            raise UnreadableImage(f"{self.path.name} ends within its pixels")
        shape = self.block_height, self.block_width, CHANNELS
        tile = np.frombuffer(data, np.uint8, self._block_bytes, offset).reshape(shape)
        (down, right), (height, width) = corner, out.shape[:2]
        out[...] = tile[down : down + height, right : right + width]

    def _fill(self, file: FileIO, offset: int, out: Pixels) -> None:
        file.seek(offset)
        left = memoryview(out).cast("B")
        while left:
            count = file.readinto(left)
            if not count:
                raise UnreadableImage(f"{self.path.name} ends within its pixels")
            left = left[count:]


def plain_raster(path: Path, dataset: Any) -> PlainBlocks | None:
    """The blocks of an open raster, if its file holds the image as it is; None for any other."""
    structure = dataset.tags(ns="IMAGE_STRUCTURE")
    stored = dataset.driver, structure.get("COMPRESSION"), structure.get("INTERLEAVE"), tuple(dataset.dtypes)
    if stored != ("GTiff", None, "PIXEL", ("uint8",) * CHANNELS):
        return None
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            found = tiff.plain_blocks(data)
    except (OSError, ValueError, struct.error):
        return None
    if found is None or found[:2] != (dataset.width, dataset.height) or min(found[:4]) < 1:
        return None
    return _with_every_block(path, found)


def _with_every_block(path: Path, found: tiff.Blocks) -> PlainBlocks | None:
    across, down = -(-found.width // found.block_width), -(-found.height // found.block_height)
    offsets = np.array(found.offsets, np.int64)
    if len(offsets) != across * down:
        return None
    rows = np.full((down, 1), found.block_height)
    if found.is_striped:
        rows[-1] = found.height - (down - 1) * found.block_height
    placed = offsets.reshape(down, across)
    ends = placed + rows * found.block_width * CHANNELS
    # A block that was never written begins at 0; of a file that was cut short, GDAL tells what is left.
    if placed.min() <= 0 or ends.max() > path.stat().st_size:
        return None
    return PlainBlocks(path, found.block_width, found.block_height, found.is_striped, placed)
