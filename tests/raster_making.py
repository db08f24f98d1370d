"""Small rasters for tests, written with rasterio."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from numpy.typing import NDArray
from rasterio.errors import NotGeoreferencedWarning


def write_raster(
    path: Path,
    bands: NDArray[Any],
    *,
    colours: list[Any] | None = None,
    palette: dict[int, tuple[int, ...]] | None = None,
    mask: NDArray[Any] | None = None,
    driver: str = "GTiff",
    **options: Any,
) -> Path:
    """Write bands × H × W (or H × W) as they are."""
    bands = bands[None] if bands.ndim == 2 else bands
    count, height, width = bands.shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        with (
            rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True),
            rasterio.open(
                path, "w", driver=driver, width=width, height=height, count=count, dtype=bands.dtype, **options
            ) as file,
        ):
            if colours is not None:
                file.colorinterp = colours
            file.write(bands)
            if palette is not None:
                file.write_colormap(1, palette)
            if mask is not None:
                file.write_mask(mask)
    return path


def noise(*shape: int, dtype: str = "uint8", high: int = 256, seed: int = 0) -> NDArray[Any]:
    """Numbers from 1 to below `high`: 0 stays free for nodata."""
    return np.random.default_rng(seed).integers(1, high, shape).astype(dtype)


def write_table(path: Path, rows: list[str]) -> Path:
    """The six-column table with these lines."""
    path.write_text("image_path,xmin,ymin,xmax,ymax,label\n" + "".join(row + "\n" for row in rows))
    return path


def assert_same(left: dict[str, Any], right: dict[str, Any]) -> None:
    """Two samples have the same fields with the same values."""
    assert left.keys() == right.keys()
    for name, value in left.items():
        assert np.array_equal(value, right[name]), name
