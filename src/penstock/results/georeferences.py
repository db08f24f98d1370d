"""Where pixels are on the map, and how much ground one shows.

x_map = a·x + b·y + c          (0, 0) is the outer corner of the first pixel, not its centre
y_map = d·x + e·y + f
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError, require

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Georeference:
    """The coordinate system of a raster (as WKT or EPSG:n) and its transform a b c d e f."""

    crs: str
    transform: tuple[float, ...]

    def __post_init__(self) -> None:
        a, b, _, d, e, _ = self.transform
        if a * e - b * d == 0:
            raise OptionError(f"transform={self.transform} brings all pixels onto a line.")

    def outlines(self, boxes: NDArray[np.floating]) -> Reals:
        """The four corners of each box on the map, as n×4×2, in the order x1 y1, x2 y1, x2 y2, x1 y2."""
        x1, y1, x2, y2 = np.asarray(boxes, np.float64).reshape(-1, 4).T
        x, y = np.stack([x1, x2, x2, x1], axis=1), np.stack([y1, y1, y2, y2], axis=1)
        a, b, c, d, e, f = self.transform
        return np.stack([a * x + b * y + c, d * x + e * y + f], axis=2)

    def boxes(self, outlines: NDArray[np.floating]) -> Reals:
        """The boxes in pixels around outlines on the map, n×k×2: back again."""
        a, b, c, d, e, f = self.transform
        x, y = np.asarray(outlines, np.float64)[:, :, 0] - c, np.asarray(outlines, np.float64)[:, :, 1] - f
        determinant = a * e - b * d
        pixels = np.stack([(e * x - b * y) / determinant, (a * y - d * x) / determinant], axis=2)
        return np.concatenate([pixels.min(axis=1), pixels.max(axis=1)], axis=1)


# How much ground a pixel shows, from the transform and the coordinate system of a raster.


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
