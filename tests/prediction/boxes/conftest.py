"""A detector that learned to find crowns, once for all tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("torchvision")

import penstock as ps  # noqa: E402
from scene_making import Scenes  # noqa: E402


@pytest.fixture(scope="session")
def crowns_run(tmp_path_factory: pytest.TempPathFactory) -> ps.Run:
    """A Run on scenes with crowns."""
    task = ps.Detection(backbone="tiny", augmentation=False)
    data = (Scenes(72), Scenes(27, first=5000))
    folder = tmp_path_factory.mktemp("runs") / "crowns"
    options: dict[str, Any] = {"batch_size": 4, "learning_rate": 5e-3, "gradient_clip": 1.0, "workers": 0}
    return ps.train(task, data, epochs=16, folder=folder, progress=False, logger=False, **options)


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
