"""How the pixels of any raster become H×W×3 uint8 RGB.

| the raster has            | the image is                                                                            |
|---------------------------|-----------------------------------------------------------------------------------------|
| three bands or more       | bands 1, 2, 3; a fourth (near infrared) is left out                                     |
| one band                  | three equal channels                                                                    |
| two bands                 | the first as grey if the second is alpha; otherwise an error that asks for `bands`      |
| a colour table            | the colours of the table, whatever the scale                                            |
| uint8                     | as it is, unless a scale was asked for                                                  |
| any other number type     | `scale` maps low…high to 0…255, rounded and clipped, never wrapped; without one given,  |
|                           | low and high are the 2nd and 98th percentile of the raster, one range for all bands     |
| complex numbers           | an error                                                                                |
| an alpha band or a mask   | black where that is 0; the colours below partial alpha stay. Alpha named in `bands` is  |
|                           | data                                                                                    |
| a nodata value, or NaN    | black where all bands of the image have it; a single NaN is 0 in its channel            |

What is black by alpha, mask, nodata or NaN counts as nodata. Percentiles are taken from at most 1024×1024 pixels,
evenly spaced, without nodata.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.opencv import opencv
from penstock.formats.rasters.raster_options import PixelOptions
from penstock.wording import counted

Pixels = NDArray[np.uint8]


class UnusableRaster(ValueError):  # noqa: N818 - reads as what it is
    """A raster that these rules cannot turn into an image: what is wrong, and what to do."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what, self.remedy = what, remedy


class TilePixels(NamedTuple):
    """Pixels as the raster stores them: bands × H × W, an alpha band last; and its own mask, 0 where nothing is.

    In memory the bands of a pixel may stand side by side.
    """

    pixels: NDArray[Any]
    mask: NDArray[np.uint8] | None

    @property
    def nbytes(self) -> int:
        return self.pixels.nbytes + (0 if self.mask is None else self.mask.nbytes)

    def copy(self) -> TilePixels:
        """Stays as it is whatever happens to the memory that this one is a view of."""
        return TilePixels(self.pixels.copy("K"), None if self.mask is None else self.mask.copy())


class DamagedTile(NamedTuple):
    """What a stream delivers in place of a tile that cannot be read; decoding it raises the reason."""

    reason: str


@dataclass(frozen=True)
class PixelRules:
    """What is read of one raster, and how it becomes an image."""

    dtype: str
    bands: tuple[int, ...]
    alpha: int | None = None
    masked: bool = False
    nodata: tuple[float | None, ...] = ()
    palette: NDArray[np.uint8] | None = field(default=None, compare=False)
    value_range: tuple[float, float] | None = None

    @property
    def read_bands(self) -> list[int]:
        return [*self.bands, self.alpha] if self.alpha is not None else list(self.bands)

    @property
    def is_rgb(self) -> bool:
        """Whether pixels with data are the image already, three bytes side by side."""
        has_colours = self.dtype == "uint8" and len(self.bands) == len(self.read_bands) == 3
        return has_colours and self.palette is None and self.value_range is None

    @property
    def may_lack_data(self) -> bool:
        """Whether any pixel can be nodata at all."""
        return (
            self.alpha is not None
            or self.masked
            or np.dtype(self.dtype).kind == "f"
            or all(value is not None for value in self.nodata)
            or (self.palette is not None and not self.palette[:, 3].all())
        )


def decide_rules(dataset: Any, options: PixelOptions) -> PixelRules:
    """The rules for an open raster, all but its range of values."""
    dtype = _one_dtype(dataset)
    bands = _image_bands(dataset, options)
    alpha = _alpha_band(dataset)
    palette = _palette(dataset, bands, dtype)
    return PixelRules(
        dtype=dtype,
        bands=bands,
        alpha=None if alpha in bands else alpha,
        masked=alpha is None and _has_mask(dataset),
        nodata=tuple(_nodata(dataset.nodatavals[band - 1], dtype, options) for band in bands),
        palette=palette,
    )


def _one_dtype(dataset: Any) -> str:
    names = sorted(set(dataset.dtypes))
    if not names:
        raise UnusableRaster("it has no bands", "Export the one that is meant as GeoTIFF")
    if len(names) > 1:
        raise UnusableRaster(f"its bands have different number types ({', '.join(names)})", "Convert it to one type")
    if names[0].startswith("complex"):  # GDAL's complex whole numbers are no type of numpy's
        raise UnusableRaster(f"its pixels are complex numbers ({names[0]})", "Store magnitude or phase instead")
    return str(names[0])


def _image_bands(dataset: Any, options: PixelOptions) -> tuple[int, ...]:
    count = dataset.count
    if options.bands is not None:
        if max(options.bands) > count:
            wanted = ",".join(map(str, options.bands))
            raise UnusableRaster(
                f"it has {counted(count, 'band')} and bands {wanted} are asked for", "Name bands that it has"
            )
        return options.bands
    if count == 2 and _alpha_band(dataset) != 2:
        raise UnusableRaster("it has two bands, and neither is alpha", "Say which one is the image, such as bands=1")
    return (1, 2, 3) if count >= 3 else (1,)


def _alpha_band(dataset: Any) -> int | None:
    from rasterio.enums import ColorInterp

    kinds = list(dataset.colorinterp)
    return kinds.index(ColorInterp.alpha) + 1 if ColorInterp.alpha in kinds else None


def _has_mask(dataset: Any) -> bool:
    from rasterio.enums import MaskFlags

    return any(MaskFlags.per_dataset in flags for flags in dataset.mask_flag_enums)


def _palette(dataset: Any, bands: tuple[int, ...], dtype: str) -> NDArray[np.uint8] | None:
    """The colour table as one RGBA row for each value; None where there is none or several bands are wanted."""
    from rasterio.enums import ColorInterp

    if len(bands) > 1 or dataset.colorinterp[bands[0] - 1] != ColorInterp.palette or dtype not in ("uint8", "uint16"):
        return None
    try:
        colours = dataset.colormap(bands[0])
    except ValueError as error:
        raise UnusableRaster("it should have a colour table and has none", "Copy or export it again") from error
    table = np.zeros((np.iinfo(dtype).max + 1, 4), np.uint8)
    table[list(colours)] = list(colours.values())
    return table


def _nodata(of_file: float | None, dtype: str, options: PixelOptions) -> float | None:
    """The nodata value as this number type holds it; None where no pixel can have it."""
    value = of_file if options.nodata is None else options.nodata
    if value is None or options.ignore_nodata or np.isnan(value):
        return None
    kind = np.dtype(dtype)
    if kind.kind == "f":
        with np.errstate(over="ignore"):
            return float(kind.type(value))
    limits = np.iinfo(kind)
    return value if value == int(value) and limits.min <= value <= limits.max else None


def valid_pixels(tile: TilePixels, rules: PixelRules) -> NDArray[np.bool_] | None:
    """Where the raster has data, as H×W; None means everywhere."""
    found: list[NDArray[np.bool_]] = []
    if rules.alpha is not None:
        found.append(tile.pixels[-1] != 0)
    if tile.mask is not None:
        found.append(tile.mask != 0)
    if rules.palette is not None:
        found.append(rules.palette[tile.pixels[0], 3] != 0)
    empty = [_empty(tile.pixels[at], value) for at, value in enumerate(rules.nodata)]
    with_data = [band for band in empty if band is not None]
    if with_data and len(with_data) == len(empty):
        found.append(~reduce(np.logical_and, with_data))
    return reduce(np.logical_and, found) if found else None


def _empty(values: NDArray[Any], nodata: float | None) -> NDArray[np.bool_] | None:
    out: NDArray[np.bool_] | None = None
    if values.dtype.kind == "f":
        out = np.isnan(values)
    if nodata is not None:
        same: NDArray[np.bool_] = values == values.dtype.type(nodata)
        out = same if out is None else out | same
    return out


def to_rgb(tile: TilePixels, rules: PixelRules, out: Pixels | None = None) -> Pixels:
    """The image of a tile, by the table at the top of this file; in `out` where that is given and can be used."""
    colours = tile.pixels[: len(rules.bands)]
    if rules.palette is not None:
        rgb: Pixels = rules.palette[colours[0]][:, :, :3].copy()
    else:
        planes = colours if rules.value_range is None else scaled(colours, rules.value_range)
        rgb = _merged(planes, np.empty((*planes.shape[1:], 3), np.uint8) if out is None else out)
    valid = valid_pixels(tile, rules)
    if valid is not None and not valid.all():
        rgb[~valid] = 0
    return rgb


def _merged(planes: Pixels, out: Pixels) -> Pixels:
    """One plane or three as an image."""
    if len(planes) == 3 and planes.strides[0] == 1:  # side by side already
        out[...] = planes.transpose(1, 2, 0)
        return out
    merged: Pixels = opencv().merge(list(planes) * (3 // len(planes)), out)
    return merged


def scaled(values: NDArray[Any], value_range: tuple[float, float]) -> Pixels:
    """Map low…high to 0…255, rounded and clipped; NaN becomes 0."""
    kind = values.dtype
    if kind.kind in "iu" and kind.itemsize <= 2:
        # There are fewer possible values than pixels: map each of them once.
        unsigned = np.dtype(f"u{kind.itemsize}")
        every = np.arange(2 ** (8 * kind.itemsize), dtype=unsigned).view(kind.newbyteorder("="))
        table = _mapped(every, *value_range)
        out: Pixels = table[values.view(unsigned)]
        return out
    return _mapped(values, *value_range)


def _mapped(values: NDArray[Any], low: float, high: float) -> Pixels:
    grey = (values.astype(np.float64) - low) * (255 / (high - low))
    np.rint(grey, out=grey)
    np.clip(grey, 0, 255, out=grey)
    grey[np.isnan(grey)] = 0
    out: Pixels = grey.astype(np.uint8)
    return out


def percentile_range(sample: TilePixels, rules: PixelRules, percentiles: tuple[float, float]) -> tuple[float, float]:
    """The values at two percentiles of all bands together, nodata left out."""
    values = sample.pixels[: len(rules.bands)]
    valid = valid_pixels(sample, rules)
    chosen = values.reshape(len(values), -1) if valid is None else values[:, valid]
    numbers = chosen[np.isfinite(chosen)]
    if not numbers.size:
        return 0.0, 1.0
    low, high = (float(value) for value in np.percentile(numbers.astype(np.float64), percentiles))
    # One value everywhere has no range; it becomes black, and whatever is above it white.
    return (low, high) if high > low else (low, low + 1)
