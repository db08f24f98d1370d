"""Opening rasters and reading windows of them, with few handles and a small cache in every thread."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.headers import UnreadableImage
from penstock.codecs.map_files import RefusedFile, gdal, gdal_errors, open_raster
from penstock.formats.rasters.plain_blocks import PlainBlocks
from penstock.formats.rasters.raster_pixels import PixelRules, TilePixels
from penstock.geometry import Window
from penstock.storage.blocks import Blocks

# A handle costs a descriptor and GDAL's tables; a thread rarely works on more rasters at a time.
OPEN_RASTERS = 4

NO_ROWS = TilePixels(np.empty((0, 0, 0), np.uint8), None)


class Handles(threading.local):
    """The open rasters of each thread; the one not used for longest is closed first.

    threads         of GDAL that decode the blocks of one reading; only for GeoTIFFs
    allow_drivers   see penstock.codecs.map_files
    """

    def __init__(self, threads: int = 1, allow_drivers: tuple[str, ...] = ()) -> None:
        self._threads, self._allow_drivers = threads, allow_drivers
        self._open: OrderedDict[Path, Any] = OrderedDict()

    def __reduce__(self) -> tuple[type[Handles], tuple[int, tuple[str, ...]]]:
        return Handles, (self._threads, self._allow_drivers)

    def dataset(self, path: Path) -> Any:
        found = self._open.pop(path, None)
        if found is None:
            found = open_raster(path, self._threads, self._allow_drivers)
        self._open[path] = found
        while len(self._open) > OPEN_RASTERS:
            self._open.popitem(last=False)[1].close()
        return found

    def forget(self) -> None:
        """Open everything anew, and decode with one thread from now on.

        Blocks that several threads of GDAL could not decode stay in its cache, and pass for pixels the next time.
        """
        self._threads = 1
        while self._open:
            self._open.popitem()[1].close()


def read_window(
    handles: Handles, path: Path, rules: PixelRules, window: Window, out: TilePixels | None = None
) -> TilePixels:
    """The pixels of a window as they are stored, into `out` where that is given; UnreadableImage on damage."""
    from rasterio.windows import Window as RasterioWindow

    where = RasterioWindow(*window)
    into = out if out is not None else empty_tile(rules, window.width, window.height)
    damage: tuple[type[Exception], ...] = (RefusedFile, *gdal_errors())
    try:
        with gdal():
            dataset = handles.dataset(path)
            dataset.read(rules.read_bands, window=where, out=into.pixels)
            if into.mask is not None:
                dataset.read_masks(rules.bands[0], window=where, out=into.mask)
    except damage as error:
        handles.forget()
        where_text = f"{window.width}×{window.height} px at x {window.x}, y {window.y} of {path.name}"
        raise UnreadableImage(f"{where_text} cannot be read ({error.__cause__ or error})") from error
    return into


def read_sample(dataset: Any, rules: PixelRules, longest_px: int) -> TilePixels:
    """Evenly spaced pixels of a whole raster, at most `longest_px` along a side."""
    factor = max(1.0, max(dataset.width, dataset.height) / longest_px)
    height, width = max(1, round(dataset.height / factor)), max(1, round(dataset.width / factor))
    tile = empty_tile(rules, width, height)
    dataset.read(rules.read_bands, out=tile.pixels)
    if tile.mask is not None:
        dataset.read_masks(rules.bands[0], out=tile.mask)
    return tile


def empty_tile(rules: PixelRules, width: int, height: int, blocks: Blocks | None = None) -> TilePixels:
    """Memory for a tile, of `blocks` where given; colours stand side by side, as most rasters and images have them."""
    bands = len(rules.read_bands)
    pixels: NDArray[Any]
    if bands == 3 and rules.dtype == "uint8":
        pixels = _empty((height, width, bands), "uint8", blocks).transpose(2, 0, 1)
    else:
        pixels = _empty((bands, height, width), rules.dtype, blocks)
    return TilePixels(pixels, _empty((height, width), "uint8", blocks) if rules.masked else None)


def _empty(shape: tuple[int, ...], dtype: str, blocks: Blocks | None) -> NDArray[Any]:
    if blocks is None:
        return np.empty(shape, dtype)
    memory = blocks.allocate(math.prod(shape) * np.dtype(dtype).itemsize)
    return np.frombuffer(memory, dtype).reshape(shape)


class RowBand:
    """Some columns of a raster, as many rows as are needed at a time; moves down and reads every row once.

    A striped raster is decoded strip by strip, and some formats only from the top: going back is expensive.
    """

    def __init__(
        self,
        handles: Handles,
        path: Path,
        rules: PixelRules,
        columns: Window,
        memory: Callable[[], TilePixels],
        row_step: int,
        *,
        plain: PlainBlocks | None = None,
    ) -> None:
        """`columns` spans the rows of the whole raster; rows are read up to the next multiple of `row_step`.

        What is `plain` is copied from the file, without GDAL. `memory` gives what nobody looks at any more; it is at
        least as wide as the columns, and as high as a tile and a step.
        """
        self.handles, self._path, self._rules = handles, path, rules
        self._columns, self._row_step = columns, row_step
        self._first, self._stop = 0, 0
        self._plain, self._memory = plain, memory
        self._buffer = NO_ROWS

    def rows(self, y: int, height: int) -> TilePixels:
        """Rows y to y + height; the next call must not go up."""
        if y + height > self._stop:
            self._read_below(y, min(self._columns.height, -(-(y + height) // self._row_step) * self._row_step))
        offset = y - self._first
        return _rows(self._buffer, offset, offset + height)

    def _read_below(self, y: int, stop: int) -> None:
        """Go on in other memory: rows from y on that are there are copied to its top, those up to `stop` are read."""
        kept, offset, before = max(0, self._stop - y), y - self._first, self._buffer
        self._buffer = columns_of(self._memory(), 0, self._columns.width)
        if kept:
            _copy(_rows(before, offset, offset + kept), _rows(self._buffer, 0, kept))
        self._first, self._stop = y, y + kept
        below = Window(self._columns.x, self._stop, self._columns.width, stop - self._stop)
        into = _rows(self._buffer, kept, stop - y)
        if self._plain is None:
            read_window(self.handles, self._path, self._rules, below, into)
        else:
            self._plain.read(below, into)
        self._stop = stop


def _rows(tile: TilePixels, first: int, stop: int) -> TilePixels:
    return TilePixels(tile.pixels[:, first:stop], None if tile.mask is None else tile.mask[first:stop])


def _copy(source: TilePixels, target: TilePixels) -> None:
    target.pixels[...] = source.pixels
    if source.mask is not None and target.mask is not None:
        target.mask[...] = source.mask


def columns_of(tile: TilePixels, first: int, stop: int) -> TilePixels:
    """A view of some columns."""
    mask = None if tile.mask is None else tile.mask[:, first:stop]
    pixels: NDArray[Any] = tile.pixels[:, :, first:stop]
    return TilePixels(pixels, mask)
