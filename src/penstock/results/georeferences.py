"""Where pixels are on the map: a transform goes from pixel corners to map coordinates, as GDAL has it.

x_map = a·x + b·y + c          (0, 0) is the outer corner of the first pixel, not its centre
y_map = d·x + e·y + f
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.errors import RecipeError

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Georeference:
    """The coordinate system of a raster (as WKT or EPSG:n) and its transform a b c d e f."""

    crs: str
    transform: tuple[float, ...]

    def __post_init__(self) -> None:
        a, b, _, d, e, _ = self.transform
        if a * e - b * d == 0:
            raise RecipeError(f"transform={self.transform} brings all pixels onto a line.")

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
