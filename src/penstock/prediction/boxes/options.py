"""What a user may choose for finding boxes, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from penstock.codecs.map_files import check_drivers
from penstock.errors import DataError, OptionError, Problem

TILE_PX, OVERLAP = 400, 0.05  # as in packing
SMALLEST_TILE_PX = 64
WHOLE_PX = 1024


@dataclass(frozen=True)
class FindingOptions:
    """How images are looked at.

    tile_px           side of the windows that images are cut into, in pixels of the model's resolution; by default
                      400, and photos of up to 1024 px are looked at as a whole
    overlap           what neighbouring windows share, as a fraction; rounded to whole strides of the network
    bands             bands of a raster for red, green and blue, counted from 1
    gsd               metres in a pixel that rasters are brought to; auto: as the model was trained; none: as they are
    within            polygons (a layer) outside of which nothing is looked for
    allow_drivers     drivers of GDAL, such as VRT, that may open rasters beside the usual ones
    score_threshold   score from which a box is an answer; by default the model's
    nms_threshold     of boxes whose IoU is above this only the best stays; by default the model's
    """

    tile_px: int | None = None
    overlap: float = OVERLAP
    bands: Any = None
    gsd: float | str | None = "auto"
    within: Any = None
    allow_drivers: Sequence[str] = ()
    score_threshold: float | None = None
    nms_threshold: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "allow_drivers", check_drivers(self.allow_drivers))
        tile = self.tile_px
        if tile is not None and (isinstance(tile, bool) or not isinstance(tile, int) or tile < SMALLEST_TILE_PX):
            raise OptionError(f"tile_px={tile!r} must be a whole number from {SMALLEST_TILE_PX}.")
        if not 0 <= self.overlap <= 0.9:
            raise OptionError(f"overlap={self.overlap!r} must be a fraction from 0 to 0.9, such as 0.05.")
        if self.gsd not in (None, "auto", "none") and not (isinstance(self.gsd, (int, float)) and self.gsd > 0):
            raise OptionError(f"gsd={self.gsd!r} must be metres in a pixel, such as 0.1, or auto, or none.")

    def windowing(self) -> list[str]:
        """The options about windows and maps that are given: samples of a Source are looked at as they are."""
        names = ("tile_px", "overlap", "bands", "gsd", "within", "allow_drivers")
        return [one.name for one in fields(self) if one.name in names and getattr(self, one.name) != one.default]

    def window_px(self, width: int, height: int, *, is_photo: bool) -> int:
        """The side of the windows of an image."""
        if self.tile_px is not None:
            return self.tile_px
        longest = max(width, height, SMALLEST_TILE_PX)
        return longest if is_photo and longest <= WHOLE_PX else TILE_PX

    @property
    def given_gsd(self) -> float | None:
        """The metres in a pixel that the user asked for."""
        return None if self.gsd is None or isinstance(self.gsd, str) else float(self.gsd)

    def thresholds(self) -> dict[str, float]:
        """Settings of the task that are changed."""
        given = {"score_threshold": self.score_threshold, "nms_threshold": self.nms_threshold}
        return {name: value for name, value in given.items() if value is not None}


def unscalable(names: Sequence[str], gsd: float) -> DataError:
    """The error for images that cannot be brought to a resolution, since their own is not known."""
    what = f"it has no georeference (CRS), so it cannot be brought to gsd={gsd:g}"
    return DataError([Problem(name, None, what, "Leave gsd out, or predict it apart") for name in names])
