"""Found boxes over the images that they were found in, as one picture: `penstock predict … --plot crowns.png`."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.headers import UnreadableImage, sniff
from penstock.codecs.images import decode_image, encode_image
from penstock.codecs.map_files import gdal, open_raster
from penstock.codecs.resizing import resized, side_target
from penstock.errors import DataError, OptionError, Problem
from penstock.formats.rasters.raster_files import describe_raster
from penstock.formats.rasters.raster_options import PixelOptions
from penstock.formats.rasters.raster_pixels import to_rgb
from penstock.formats.rasters.raster_windows import read_sample
from penstock.reporting.pictures import draw_boxes, with_caption
from penstock.results.box_frames import CORNERS
from penstock.storage.plain_files import open_file, read_file
from penstock.storage.whole_files import write_whole
from penstock.wording import counted

Picture = NDArray[np.uint8]

CODECS = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp"}
# Crowns of 20 px in an ortho of 20,000 px are still to be seen.
LONGEST_SIDE_PX = 4096
# Of many images so many are shown.
MOST_IMAGES = 12


def check_plot_name(path: str | os.PathLike[str]) -> Path:
    """Refuse a name whose ending says of no picture what it is."""
    target = Path(path)
    if target.suffix.lower() not in CODECS:
        raise OptionError(f"plot={str(path)!r} must end in {', '.join(CODECS)}.")
    if not target.absolute().parent.is_dir():
        raise OptionError(f"plot={str(path)!r}: there is no folder {target.parent}. Make it first.")
    return target


def plot_boxes(
    table: Any,
    path: str | os.PathLike[str],
    *,
    images: Sequence[str | os.PathLike[str]] | None = None,
    folder: str | os.PathLike[str] | None = None,
    longest_side: int = LONGEST_SIDE_PX,
    bands: Any = None,
    allow_drivers: str | Sequence[str] = (),
) -> Path:
    """Draw a table of found boxes over its images, made smaller where they are large; an empty table draws the images.

    images         which images are drawn; by default those that the table knows, at most 12
    folder         what their names are relative to
    longest_side   of the whole picture, in pixels
    bands, allow_drivers   how rasters are read, as in `predict`
    """
    target = check_plot_name(path)
    known = [*table.image_sizes, *table["image_path"].tolist()] if images is None else [str(image) for image in images]
    names = list(dict.fromkeys(known))
    if not names:
        raise OptionError("the table names no image to draw: pass images.")
    shown = names[:MOST_IMAGES]
    columns = math.ceil(math.sqrt(len(shown)))
    options = PixelOptions.of(bands, "auto", None, allow_drivers)
    pictures = [_drawn(table, Path(folder or "") / name, name, longest_side // columns, options) for name in shown]
    write_whole(target, encode_image(_sheet(pictures, columns), CODECS[target.suffix.lower()]))
    return target


def _drawn(table: Any, file: Path, name: str, longest_side: int, options: PixelOptions) -> Picture:
    picture, factor = small_image(file, longest_side, options)
    mine = table[table["image_path"] == name]
    names = list(dict.fromkeys([*table.classes, *table["label"].tolist()]))
    numbers = np.array([names.index(label) for label in mine["label"]], np.int64)
    corners = mine[list(CORNERS)].to_numpy(np.float64) * factor
    draw_boxes(picture, corners, numbers, names)
    return with_caption(picture, f"{file.name}  {counted(len(mine), 'box')}")


def small_image(path: Path, longest_side: int, options: PixelOptions) -> tuple[Picture, float]:
    """An image of any size as RGB, at most so large, and by how much it shrank.

    Photos stand upright. Rasters, and photos of which `options` chooses bands, are read by the rules of packing, and
    only as many pixels as are needed.
    """
    try:
        with open_file(path) as file:
            is_photo = sniff(file.read(16)) not in ("", "tiff") and options.bands is None
        return _small_photo(path, longest_side) if is_photo else _small_raster(path, longest_side, options)
    except (OSError, UnreadableImage) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError([Problem(str(path), None, f"the image cannot be drawn: {reason}", "Check the path")]) from error


def _small_photo(path: Path, longest_side: int) -> tuple[Picture, float]:
    pixels = decode_image(read_file(path))
    width, height = side_target(pixels.shape[1], pixels.shape[0], longest_side, None)
    return np.array(resized(pixels, width, height)), width / pixels.shape[1]


def _small_raster(path: Path, longest_side: int, options: PixelOptions) -> tuple[Picture, float]:
    raster, problem = describe_raster(path, options)
    if raster is None:
        raise DataError([problem] if problem else [])
    with gdal(), open_raster(path, allow_drivers=options.allow_drivers) as dataset:
        picture = to_rgb(read_sample(dataset, raster.rules, longest_side), raster.rules)
    return np.ascontiguousarray(picture), picture.shape[1] / raster.width


def _sheet(pictures: Sequence[Picture], columns: int) -> Picture:
    """Pictures in rows, each in a cell as large as the largest."""
    height, width = max(picture.shape[0] for picture in pictures), max(picture.shape[1] for picture in pictures)
    rows = -(-len(pictures) // columns)
    sheet = np.full((rows * height, columns * width, 3), 24, np.uint8)
    for number, picture in enumerate(pictures):
        row, column = divmod(number, columns)
        y, x = row * height, column * width
        sheet[y : y + picture.shape[0], x : x + picture.shape[1]] = picture
    return sheet
