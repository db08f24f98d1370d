"""Points that become boxes of so many metres: how many pixels that is, each image says for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.headers import UnreadableImage
from penstock.codecs.map_files import gdal, gdal_errors, open_raster
from penstock.errors import Problem
from penstock.formats.boxes.rows import Rows
from penstock.formats.reading import ReadingOptions, parse_buffer
from penstock.results.georeferences import metres_per_pixel


def scale_points(
    rows: Rows, image: NDArray[np.int64], files: Sequence[Path], options: ReadingOptions
) -> tuple[Rows, list[Problem]]:
    """Boxes around points, so far one pixel to each side, with the size in metres that was asked for.

    `image` numbers `files` for each row. Images with points and without a georeference are problems.
    """
    buffer = parse_buffer(options.point_buffer)
    if buffer is not None and np.isfinite(rows.box).any() and not rows.point.any():
        return rows, [_without_points(rows, options)]
    if buffer is None or not buffer.in_metres:
        return rows, []
    problems: list[Problem] = []
    box, broken = rows.box.copy(), rows.broken.copy()
    for number in np.unique(image[rows.point & (image >= 0)]).tolist():
        mine = np.flatnonzero(rows.point & (image == number))
        metres = _metres_per_pixel(files[number], options)
        if metres is None:
            what = f"it has no georeference (CRS), so that {options.point_buffer} cannot be brought to pixels"
            problems.append(Problem(str(files[number]), None, what, "Pass point_buffer in pixels, such as 10"))
            broken[mine], box[mine] = True, np.nan
            continue
        centre = (box[mine, :2] + box[mine, 2:]) / 2
        half = buffer.half_side / metres
        box[mine] = np.hstack([centre - half, centre + half])
    return replace(rows, box=box, broken=broken), problems


def _without_points(rows: Rows, options: ReadingOptions) -> Problem:
    place = rows.tables[0] if rows.tables else "annotations"
    what = f"point_buffer={options.point_buffer} has no effect: there are no points"
    return Problem(place, None, what, "Leave it out", warning=True)


def _metres_per_pixel(file: Path, options: ReadingOptions) -> float | None:
    try:
        with gdal(), open_raster(file, allow_drivers=options.allow_drivers) as raster:
            if not raster.crs:
                return None
            place = {"x": raster.width / 2, "y": raster.height / 2}
            return metres_per_pixel(tuple(raster.transform)[:6], raster.crs.to_wkt(), **place)
    except (OSError, UnreadableImage):
        return None
    except gdal_errors():
        return None
