"""Pixels of uncompressed GeoTIFFs, copied from the file as they lie there.

Nothing is to be decoded. Through GDAL such pixels would pass its cache, with their bands apart, and be put together
again: three quarters of the work. Rows of strips are read into their place; those of tiles into a small memory, and
dealt out from there: by the kernel, in one call for a row of tiles, or here where it is not built.
"""

from __future__ import annotations

import mmap
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
from penstock.codecs.kernel.bulk import read_tiles
from penstock.formats.rasters.raster_pixels import TilePixels
from penstock.geometry import Window
from penstock.storage.plain_files import open_file, open_unbuffered

Pixels = NDArray[np.uint8]
CHANNELS = 3
# Tiles that are read at once: what the second cache of a processor holds.
TOGETHER_BYTES = 512 << 10


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
        shape = window.height, window.width, CHANNELS
        image = np.empty(shape, np.uint8) if out is None else out.pixels.transpose(1, 2, 0)
        read_rows = self._read_strip if self.is_striped else self._read_tiles
        try:
            with open_unbuffered(self.path) as file:
                for y, stop in self._rows_of_blocks(window):
                    read_rows(file, y, window.x, image[y - window.y : stop - window.y])
        except EOFError as error:
            raise UnreadableImage(f"{self.path.name} ends within its pixels") from error
        except OSError as error:
            raise UnreadableImage(f"{self.path.name} cannot be read ({error})") from error
        return TilePixels(image.transpose(2, 0, 1), None)

    def _rows_of_blocks(self, window: Window) -> Iterator[tuple[int, int]]:
        """Rows of the window, the first and the stop, that lie in one row of blocks."""
        y, end = window.y, window.y + window.height
        while y < end:
            stop = min(end, (y // self.block_height + 1) * self.block_height)
            yield y, stop
            y = stop

    def _read_strip(self, file: FileIO, y: int, x: int, out: Pixels) -> None:
        number, above = divmod(y, self.block_height)
        start = int(self.offsets[number, 0]) + above * self._row_bytes
        if out.shape[1] == self.block_width:
            self._fill(file, start, out)
            return
        for row, pixels in enumerate(out):
            self._fill(file, start + row * self._row_bytes + x * CHANNELS, pixels)

    def _read_tiles(self, file: FileIO, y: int, x: int, out: Pixels) -> None:
        number, above = divmod(y, self.block_height)
        first, stop = x // self.block_width, -(-(x + out.shape[1]) // self.block_width)
        offsets = self.offsets[number, first:stop] + above * self._row_bytes
        left = x - first * self.block_width
        if not read_tiles(file.fileno(), offsets, self._row_bytes, left * CHANNELS, out):
            self._deal_out_tiles(file, offsets.tolist(), left, out)

    def _deal_out_tiles(self, file: FileIO, offsets: list[int], left: int, out: Pixels) -> None:
        """What `read_tiles` does, where the kernel does not."""
        # Rows of one tile follow one another in the file; those of the next tile only if all rows are wanted.
        most = max(1, TOGETHER_BYTES // self._block_bytes) if len(out) == self.block_height else 1
        memory = np.empty((min(most, len(offsets)), len(out), self.block_width, CHANNELS), np.uint8)
        for start, count in self._neighbours(offsets, most):
            tiles = memory[:count]
            self._fill(file, offsets[start], tiles)
            for place, tile in enumerate(tiles, start=start):
                x = place * self.block_width - left
                part = slice(max(0, x), x + self.block_width)
                seen = out[:, part]
                seen[...] = tile[:, part.start - x :][:, : seen.shape[1]]

    def _neighbours(self, offsets: list[int], most: int) -> Iterator[tuple[int, int]]:
        """Tiles of one row of them: where some begin, and how many follow one another in the file."""
        start = 0
        for place in range(1, len(offsets) + 1):
            follows = place < len(offsets) and offsets[place] - offsets[place - 1] == self._block_bytes
            if not follows or place - start == most:
                yield start, place - start
                start = place

    def _fill(self, file: FileIO, offset: int, out: Pixels) -> None:
        file.seek(offset)
        left = out.data.cast("B")
        while left:
            count = file.readinto(left)
            if not count:
                raise EOFError
            left = left[count:]


def plain_raster(path: Path, dataset: Any) -> PlainBlocks | None:
    """The blocks of an open raster, if its file holds the image as it is; None for any other."""
    structure = dataset.tags(ns="IMAGE_STRUCTURE")
    stored = dataset.driver, structure.get("COMPRESSION"), structure.get("INTERLEAVE"), tuple(dataset.dtypes)
    if stored != ("GTiff", None, "PIXEL", ("uint8",) * CHANNELS):
        return None
    try:
        with open_file(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            found = tiff.plain_blocks(data)
    except (OSError, ValueError, OverflowError, IndexError, struct.error):
        return None
    if found is None or found[:2] != (dataset.width, dataset.height) or min(found[:4]) < 1:
        return None
    return _with_every_block(path, found)


def _with_every_block(path: Path, found: tiff.Blocks) -> PlainBlocks | None:
    across, down = -(-found.width // found.block_width), -(-found.height // found.block_height)
    if len(found.offsets) != across * down or max(found.offsets) > path.stat().st_size:
        return None
    offsets = np.array(found.offsets, np.int64)
    rows = np.full((down, 1), found.block_height)
    if found.is_striped:
        rows[-1] = found.height - (down - 1) * found.block_height
    placed = offsets.reshape(down, across)
    ends = placed + rows * found.block_width * CHANNELS
    # A block that was never written begins at 0; of a file that was cut short, GDAL tells what is left.
    if placed.min() <= 0 or ends.max() > path.stat().st_size:
        return None
    return PlainBlocks(path, found.block_width, found.block_height, found.is_striped, placed)
