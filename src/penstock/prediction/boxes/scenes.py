"""What boxes are looked for in: a raster, read window by window, or an image that is decoded at once."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.headers import UnreadableImage, read_file_header
from penstock.codecs.images import decode_image
from penstock.codecs.map_files import gdal, gdal_errors, open_raster
from penstock.errors import DataError, HopError, Problem
from penstock.formats.paths import read_bytes
from penstock.formats.rasters.raster_files import RasterFile, Tiles, describe_raster, stream_tiles
from penstock.formats.rasters.raster_options import PixelOptions
from penstock.formats.rasters.raster_pixels import DamagedTile, PixelRules, TilePixels, to_rgb, valid_pixels
from penstock.formats.rasters.raster_windows import Handles
from penstock.prediction.boxes.window_plans import WindowPlan
from penstock.results.georeferences import Georeference
from penstock.storage.blocks import Blocks
from penstock.storage.file_names import readable_name

Pixels = NDArray[np.uint8]
# Photos that decode in a moment and take some 200 MB; what is larger is read as a raster.
LARGEST_PHOTO_PX = 1 << 26
SPARSE = 64
RASTERS = (".tif", ".tiff", ".jp2", ".img", ".vrt")


class Shown(NamedTuple):
    """A window as the network is shown it."""

    number: int
    pixels: Pixels


@dataclass(frozen=True)
class Scene:
    """One image or raster: its size, its place on the map, and how its windows are read, in order, by some threads."""

    name: str
    width: int
    height: int
    place: Georeference | None
    is_photo: bool
    read: Callable[[WindowPlan, NDArray[np.int64], int], Iterator[Shown]]
    # One reading has threads of its own; else as many readings as there are threads share the windows.
    reads_in_parallel: bool = False


def open_scene(path: Path, bands: Any, allow_drivers: Sequence[str] = ()) -> Scene:
    """A file as a scene: TIFF and the like as rasters, photos as images."""
    if path.suffix.lower() not in RASTERS and bands is None:
        try:
            header = read_file_header(path)
        except (OSError, UnreadableImage) as error:
            raise HopError("read", str(path), str(error)) from error
        if header.width * header.height <= LARGEST_PHOTO_PX:
            return photo_scene(path)
    raster, problem = describe_raster(path, PixelOptions.of(bands, "auto", None, allow_drivers))
    if raster is None or problem is not None:
        raise DataError([problem or Problem(str(path), None, "it cannot be read", "Copy it again")])
    return raster_scene(raster, tuple(allow_drivers))


def lacks_place(path: Path, allow_drivers: Sequence[str] = ()) -> bool:
    """Whether an image that can be read has no georeference, as far as its header says."""
    if path.suffix.lower() not in RASTERS:
        return True
    try:
        with gdal(), open_raster(path, allow_drivers=allow_drivers) as raster:
            return not raster.crs
    except (OSError, UnreadableImage):
        return False  # whose turn comes, and is an error or skipped
    except gdal_errors():
        return False


def photo_scene(path: Path) -> Scene:
    """An image that is decoded at once, turned as it says."""
    try:
        pixels = decode_image(read_bytes(path))
    except (OSError, UnreadableImage) as error:
        raise HopError("decode", str(path), str(error)) from error
    return image_scene(readable_name(os.fspath(path)), pixels)


def image_scene(name: str, pixels: Pixels) -> Scene:
    """An image in memory."""

    def read(plan: WindowPlan, numbers: NDArray[np.int64], _: int) -> Iterator[Shown]:
        tiles = plan.tiles
        for number in numbers.tolist():
            x, y, width, height = tiles.window(number)
            yield from _worth_a_look(plan, number, pixels[y : y + height, x : x + width])

    return Scene(name, pixels.shape[1], pixels.shape[0], None, True, read)


def raster_scene(raster: RasterFile, allow_drivers: tuple[str, ...] = ()) -> Scene:
    """A raster of any size: every strip is decoded once, a band of rows is in memory."""
    place = Georeference(raster.crs, raster.transform) if raster.crs else None

    def read(plan: WindowPlan, numbers: NDArray[np.int64], threads: int) -> Iterator[Shown]:
        how: Tiles = "shared" if raster.rules.is_rgb else "passing"
        tiles = stream_tiles(Handles(threads, allow_drivers), raster, plan.tiles, numbers, tiles=how)
        memory = Blocks(3 * plan.tiles.tile_height * plan.tiles.tile_width)
        for number, tile in zip(numbers.tolist(), tiles, strict=True):
            if isinstance(tile, DamagedTile):
                raise HopError("read", raster.path.as_posix(), tile.reason)
            image = _image(tile, raster.rules, memory)
            if image is not None:
                yield from _worth_a_look(plan, number, image)

    # Where pixels have to be converted, that takes longer than decoding them, and GDAL does none of it; where nothing
    # has to be decoded, it has no part at all.
    is_parallel = raster.is_geotiff and raster.rules.is_rgb and raster.plain is None
    return Scene(readable_name(os.fspath(raster.path)), raster.width, raster.height, place, False, read, is_parallel)


def _image(tile: TilePixels, rules: PixelRules, memory: Blocks) -> Pixels | None:
    """A tile as RGB, where it lies if that is what is stored; None where it has no data."""
    valid = valid_pixels(tile, rules) if rules.may_lack_data else None
    if valid is not None and not valid.any():
        return None
    if rules.is_rgb and (valid is None or valid.all()):
        return tile.pixels.transpose(1, 2, 0)
    shape = *tile.pixels.shape[1:], 3
    return to_rgb(tile, rules, np.frombuffer(memory.allocate(math.prod(shape)), np.uint8).reshape(shape))


def _worth_a_look(plan: WindowPlan, number: int, tile: Pixels) -> Iterator[Shown]:
    """The window, unless it is of one colour: nothing can be seen there."""
    # A few pixels tell it of nearly every window; only where they are alike all are compared.
    if (tile[::SPARSE, ::SPARSE] != tile[0, 0]).any() or not _is_of_one_colour(tile):
        yield Shown(number, plan.shown(number, tile))


def _is_of_one_colour(tile: Pixels) -> bool:
    # Each row with the first one: numpy compares long rows 20 times as fast as pixels of three bytes.
    return bool((tile[0] == tile[0, 0]).all() and (tile == tile[0]).all())
