"""One raster: what its header says, its tiles one at a time, and its tiles in order with every strip decoded once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.headers import UnreadableImage, read_file_header, sniff
from penstock.codecs.map_files import RefusedFile, gdal, gdal_errors, open_raster
from penstock.errors import Problem
from penstock.formats.rasters.plain_blocks import PlainBlocks, plain_raster
from penstock.formats.rasters.raster_options import PixelOptions
from penstock.formats.rasters.raster_pixels import (
    DamagedTile,
    PixelRules,
    TilePixels,
    UnusableRaster,
    decide_rules,
    percentile_range,
)
from penstock.formats.rasters.raster_windows import (
    Handles,
    RowBand,
    columns_of,
    empty_tile,
    read_sample,
    read_window,
)
from penstock.geometry import TileGrid, Window
from penstock.storage.blocks import Blocks
from penstock.storage.plain_files import open_file

Tiles = Literal["copies", "passing", "shared"]

# What may lie in memory of a row of tiles: one of 400 px of a raster 20,000 px wide takes 24 MB as uint8 and 96 MB as
# float32. Where tiles share it, one band is read while tiles of two others are still looked at.
BAND_BYTES = 128 << 20
SHARED_BAND_BYTES = 64 << 20

# Where nothing is decoded, narrow bands cost nothing: no strip is decoded for each of them.
PLAIN_BAND_BYTES = 16 << 20

# More than any camera or satellite has flown, and what a damaged header may say.
MOST_PX = 1 << 44

# About a million pixels say where the percentiles of a raster lie.
SAMPLE_PX = 1024


@dataclass(frozen=True)
class RasterFile:
    """What must be known of a raster before it is cut; `transform` is a b c d e f from pixel corners to the map."""

    path: Path
    width: int
    height: int
    block_height: int
    transform: tuple[float, ...]
    crs: str
    rules: PixelRules
    plain: PlainBlocks | None = field(default=None, compare=False)  # where the file holds the image as it is
    is_geotiff: bool = field(default=False, compare=False)  # whose blocks GDAL can decode in several threads

    def tile_transform(self, window: Window, across: float = 1.0, down: float = 1.0) -> tuple[float, ...]:
        """From the pixel corners of a tile to the map, each pixel of which is so many of the raster."""
        a, b, c, d, e, f = self.transform
        west, north = a * window.x + b * window.y + c, d * window.x + e * window.y + f
        return a * across, b * down, west, d * across, e * down, north


def describe_raster(path: Path, options: PixelOptions) -> tuple[RasterFile | None, Problem | None]:
    """Read a raster's header (and, where percentiles are needed, a sample of it); and what is wrong with it.

    A raster that was cut short has both: what is left of it may be wanted.
    """
    damage: tuple[type[Exception], ...] = (UnreadableImage, UnicodeDecodeError, OSError, *gdal_errors())
    try:
        cut_short = _missing_end(path)
        with gdal(), open_raster(path, allow_drivers=options.allow_drivers) as dataset:
            raster = _described(path, dataset, options)
    except UnusableRaster as reason:
        return None, Problem(path.as_posix(), None, reason.what, reason.remedy)
    except RefusedFile as reason:
        return None, Problem(path.as_posix(), None, reason.what, reason.remedy, unreadable=True)
    except damage as error:
        return None, _unreadable(path, f"it cannot be read as a raster ({error.__cause__ or error})")
    return raster, _unreadable(path, cut_short) if cut_short else None


def _unreadable(path: Path, what: str) -> Problem:
    return Problem(path.as_posix(), None, what, "Copy or export it again, or leave it out", unreadable=True)


def _missing_end(path: Path) -> str:
    """Find what GDAL would only notice while reading: that the end is missing; and what it does not do: turn photos."""
    with open_file(path) as file:
        start = file.read(16)
    if not start:
        raise UnreadableImage("the file is empty")
    try:
        turned = read_file_header(path).orientation if sniff(start) else 1
    except UnreadableImage as error:
        return str(error)
    if turned != 1:
        raise UnusableRaster(
            f"its EXIF orientation is {turned}, and rasters are read as they are stored",
            "Save it upright, or use Boxes or Images, which turn it",
        )
    return ""


def _described(path: Path, dataset: Any, options: PixelOptions) -> RasterFile:
    if dataset.width * dataset.height > MOST_PX:
        raise UnusableRaster(f"its header says {dataset.width:,}×{dataset.height:,} px", "Copy or export it again")
    rules = decide_rules(dataset, options)
    value_range = _value_range(dataset, rules, options)
    is_image = rules.read_bands == [1, 2, 3] and not rules.masked and value_range is None
    return RasterFile(
        path=path,
        width=dataset.width,
        height=dataset.height,
        block_height=max(height for height, _ in dataset.block_shapes),
        transform=tuple(float(value) for value in dataset.transform[:6]),
        crs=_crs_text(dataset.crs),
        rules=replace(rules, value_range=value_range),
        plain=plain_raster(path, dataset) if is_image else None,
        is_geotiff=dataset.driver == "GTiff",
    )


def _value_range(dataset: Any, rules: PixelRules, options: PixelOptions) -> tuple[float, float] | None:
    scale = options.scale
    if rules.palette is not None or (rules.dtype == "uint8" and not scale.always):
        return None
    if scale.values is not None:
        return scale.values
    return percentile_range(read_sample(dataset, rules, SAMPLE_PX), rules, scale.percentiles)


def _crs_text(crs: Any) -> str:
    """`EPSG:32611` where that says everything, WKT otherwise, empty where the raster is on no map."""
    if not crs:
        return ""
    authority = crs.to_authority()
    if authority and crs == ":".join(authority):
        return ":".join(authority)
    return str(crs.to_wkt())


def read_tile(handles: Handles, raster: RasterFile, window: Window) -> TilePixels:
    """One tile, wherever it is."""
    if raster.plain is not None:
        return raster.plain.read(window)
    return read_window(handles, raster.path, raster.rules, window)


def stream_tiles(
    handles: Handles, raster: RasterFile, grid: TileGrid, numbers: NDArray[np.int64], *, tiles: Tiles = "copies"
) -> Iterator[TilePixels | DamagedTile]:
    """The tiles with these numbers (ascending), the same as `read_tile` gives them, one row of tiles at a time.

    Where the rows around a tile are damaged, each tile is read by itself, so that only damaged ones are lost.

    tiles   copies; passing views, which the next tile overwrites; or shared views of one row of tiles, which lasts as
            long as anybody has one of them
    """
    rows, columns = np.divmod(numbers, len(grid.columns))
    spans = _column_spans(raster, grid, SHARED_BAND_BYTES if tiles == "shared" else BAND_BYTES)
    make_band = _band_maker(handles, raster, grid, spans, is_shared=tiles == "shared")
    only = make_band(spans[0]) if len(spans) == 1 else None
    for row in np.unique(rows):
        here = columns[rows == row]
        for span in spans:
            inside = here[(here >= span.start) & (here < span.stop)]
            band = only or make_band(span)
            for tile in _tiles_of_row(band, raster, grid, int(row), inside, span):
                yield tile.copy() if tiles == "copies" and isinstance(tile, TilePixels) else tile


def _tiles_of_row(
    band: RowBand, raster: RasterFile, grid: TileGrid, row: int, columns: NDArray[np.int64], span: range
) -> Iterator[TilePixels | DamagedTile]:
    if not len(columns):
        return
    try:
        pixels = band.rows(grid.rows[row], grid.tile_height)
    except UnreadableImage:
        for column in columns:
            yield _tile_or_damage(band.handles, raster, grid.window(row * len(grid.columns) + int(column)))
        return
    for column in columns:
        x = grid.columns[column] - grid.columns[span.start]
        yield columns_of(pixels, x, x + grid.tile_width)


def _tile_or_damage(handles: Handles, raster: RasterFile, window: Window) -> TilePixels | DamagedTile:
    try:
        return read_tile(handles, raster, window)
    except UnreadableImage as error:
        return DamagedTile(str(error))


def _column_spans(raster: RasterFile, grid: TileGrid, band_bytes: int) -> list[range]:
    """Neighbouring columns of tiles that fit into memory together: all of them, unless the raster is very wide."""
    column_bytes = _pixel_bytes(raster) * grid.tile_height
    most_bytes = band_bytes if raster.plain is None else min(band_bytes, PLAIN_BAND_BYTES)
    limit = max(grid.tile_width, most_bytes // column_bytes)
    spans, first = [], 0
    for column, x in enumerate(grid.columns):
        if x + grid.tile_width - grid.columns[first] > limit:
            spans.append(range(first, column))
            first = column
    return [*spans, range(first, len(grid.columns))]


def _band_maker(
    handles: Handles, raster: RasterFile, grid: TileGrid, spans: list[range], *, is_shared: bool
) -> Callable[[range], RowBand]:
    """A function that makes the band of some columns; all of them work in the same memory, one at a time."""
    columns = {span: _columns(raster, grid, span) for span in spans}
    width = max(one.width for one in columns.values())
    # Whole blocks at a time, so that a tiled raster is decoded once too; where that is too much, row by row.
    aligned = (grid.tile_height + raster.block_height) * width * _pixel_bytes(raster) <= BAND_BYTES
    step = raster.block_height if aligned and raster.plain is None else 1
    height = min(raster.height, grid.tile_height + step - 1)
    memory = _band_memory(raster, width, height, is_shared=is_shared)
    return lambda span: RowBand(handles, raster.path, raster.rules, columns[span], memory, step, plain=raster.plain)


def _band_memory(raster: RasterFile, width: int, height: int, *, is_shared: bool) -> Callable[[], TilePixels]:
    """What gives memory for a band: always the same, or some that nobody has a tile of."""
    if is_shared:
        blocks = Blocks(width * height * _pixel_bytes(raster))
        return lambda: empty_tile(raster.rules, width, height, blocks)
    memory = empty_tile(raster.rules, width, height)
    return lambda: memory


def _columns(raster: RasterFile, grid: TileGrid, span: range) -> Window:
    x = grid.columns[span.start]
    return Window(x, 0, grid.columns[span.stop - 1] + grid.tile_width - x, raster.height)


def _pixel_bytes(raster: RasterFile) -> int:
    """Bytes of one pixel with all its bands, in memory."""
    rules = raster.rules
    return len(rules.read_bands) * np.dtype(rules.dtype).itemsize + rules.masked
