"""A function that writes rasters; tests of this folder need torch and Lightning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("torchvision")


@pytest.fixture
def raster(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes pixels as a GeoTIFF."""
    rasterio = pytest.importorskip("rasterio")

    def write(pixels: Any, *, name: str = "ortho.tif", gsd: float = 0.1, **options: Any) -> Path:
        path = tmp_path / name
        height, width = pixels.shape[:2]
        place = rasterio.Affine(gsd, 0, 500_000, 0, -gsd, 4_000_000)
        kind = {"driver": "GTiff", "width": width, "height": height, "count": 3, "dtype": "uint8"}
        with rasterio.open(path, "w", **{"crs": "EPSG:32617", "transform": place, **kind, **options}) as file:
            file.write(pixels.transpose(2, 0, 1))
        return path

    return write
