"""How a user says which bands become the image and which values become black and white."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.codecs.map_files import check_drivers
from penstock.errors import OptionError

# Two in a hundred on either side: roofs and shadows do not decide how bright the trees are.
DEFAULT_PERCENTILES = (2.0, 98.0)

_SCALES = "'auto', 'percentile', percentiles such as '2-98', or two values such as (0, 3000)"


@dataclass(frozen=True)
class Scale:
    """Which values become 0 and 255: two given values, or two percentiles of each raster.

    `always` says whether that holds for uint8 too, which is otherwise taken as it is.
    """

    values: tuple[float, float] | None = None
    percentiles: tuple[float, float] = DEFAULT_PERCENTILES
    always: bool = False

    def __str__(self) -> str:
        if self.values is not None:
            return f"{self.values[0]:g} to {self.values[1]:g} become 0 to 255"
        low, high = self.percentiles
        return f"percentiles {low:g} to {high:g} of each raster become 0 to 255"


@dataclass(frozen=True)
class PixelOptions:
    """What the user decided about pixels; None leaves it to the raster. `allow_drivers`: see `codecs/map_files.py`."""

    bands: tuple[int, ...] | None = None
    scale: Scale = Scale()
    nodata: float | None = None
    ignore_nodata: bool = False
    allow_drivers: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, bands: object, scale: object, nodata: object, allow_drivers: str | Sequence[str] | None = None
    ) -> PixelOptions:
        ignore = nodata == "none"
        return cls(
            bands=parse_bands(bands),
            scale=parse_scale(scale),
            nodata=None if nodata is None or ignore else _number(nodata, "nodata", "a number or 'none'"),
            ignore_nodata=ignore,
            allow_drivers=check_drivers(allow_drivers),
        )


def parse_bands(bands: object) -> tuple[int, ...] | None:
    """One or three band numbers, counted from 1: 4, '3,2,1' or [3, 2, 1]."""
    if bands is None:
        return None
    given: Sequence[Any] = (
        bands.split(",") if isinstance(bands, str) else bands if isinstance(bands, Sequence) else [bands]
    )
    try:
        numbers = tuple(int(number) for number in given)
    except (TypeError, ValueError) as error:
        raise OptionError(f"bands={bands!r} are not numbers such as '1,2,3'.") from error
    if len(numbers) not in (1, 3) or min(numbers) < 1:
        raise OptionError(f"bands={bands!r} must be one band (grey) or three (red, green, blue), counted from 1.")
    return numbers


def parse_scale(scale: object) -> Scale:
    """Which values become black and white, from what the user wrote."""
    if scale is None or scale == "auto":
        return Scale()
    if scale == "percentile":
        return Scale(always=True)
    if isinstance(scale, str):
        percentiles = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*-\s*(\d+(?:\.\d+)?)\s*", scale)
        if percentiles:
            return Scale(percentiles=_percentiles(float(percentiles[1]), float(percentiles[2])), always=True)
        scale = scale.split(",")
    if not isinstance(scale, Sequence) or len(scale) != 2:
        raise OptionError(f"scale={scale!r} must be {_SCALES}.")
    low, high = (_number(value, "scale", _SCALES) for value in scale)
    if not low < high:
        raise OptionError(f"scale={low:g},{high:g}: the first value becomes 0 and must be below the second.")
    return Scale(values=(low, high), always=True)


def _percentiles(low: float, high: float) -> tuple[float, float]:
    if not 0 <= low < high <= 100:
        raise OptionError(f"scale='{low:g}-{high:g}': percentiles go from 0 to 100, the lower one first.")
    return low, high


def _number(value: object, name: str, expected: str) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # what cannot become a number is the error that is caught
    except (TypeError, ValueError) as error:
        raise OptionError(f"{name}={value!r} must be {expected}.") from error
