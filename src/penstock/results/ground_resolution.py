"""How much ground a pixel shows, from the transform and the coordinate system of a raster."""

from __future__ import annotations

import math
from typing import Any

from penstock.errors import require

METRES_PER_DEGREE = 111_320.0  # along a meridian
# Resolutions that differ by less are the same.
SAME_RESOLUTION = 0.02


def same_resolution(ratio: float) -> bool:
    """Whether nothing is gained by resampling by this factor."""
    return abs(ratio - 1) <= SAME_RESOLUTION


def metres_per_pixel(transform: Any, crs: str, *, x: float = 0.0, y: float = 0.0) -> float | None:
    """The mean side of a pixel in metres, from a b c d e f and the coordinate system; None without one.

    Degrees are of different length along a parallel: there, the place (x, y) in pixels counts.
    """
    if not crs:
        return None
    a, b, _, d, e, north = (float(value) for value in transform)
    try:
        units = _metres_per_unit(crs)
    except require("rasterio.errors", "geo", "Reading coordinate systems").CRSError:  # one of a building site, perhaps
        return None
    across, down = math.hypot(a, d), math.hypot(b, e)
    if units is not None:
        return float(f"{math.sqrt(across * down) * units:.6g}")
    latitude = math.radians(north + d * x + e * y)
    return float(f"{math.sqrt(across * math.cos(latitude) * down) * METRES_PER_DEGREE:.6g}")


def _metres_per_unit(crs: str) -> float | None:
    """Metres in the unit of a coordinate system; None for degrees."""
    system = require("rasterio.crs", "geo", "Reading coordinate systems").CRS.from_user_input(crs)
    return None if system.is_geographic else float(system.linear_units_factor[1])
