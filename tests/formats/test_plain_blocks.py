"""Uncompressed rasters, copied from the file: the pixels that GDAL gives, and GDAL where they are not all there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.codecs import kernel
from penstock.codecs.headers import UnreadableImage
from penstock.formats.rasters.plain_blocks import TOGETHER_BYTES
from penstock.formats.rasters.raster_files import RasterFile, describe_raster, read_tile
from penstock.formats.rasters.raster_options import PixelOptions
from penstock.formats.rasters.raster_windows import Handles
from penstock.geometry import Window
from raster_making import noise, write_raster

TILES = {"tiled": True, "blockxsize": 32, "blockysize": 16}


def described(path: Path, **options: Any) -> RasterFile:
    raster, problem = describe_raster(path, PixelOptions.of(options.get("bands"), "auto", None))
    assert raster is not None and problem is None
    return raster


@pytest.fixture(params=["kernel", "fallback"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of the two ways reads tiles."""
    if request.param == "fallback":
        monkeypatch.setattr(kernel, "native_extension", lambda: None)
    elif kernel.native_extension() is None:
        pytest.skip("the kernel was not built")


@pytest.mark.usefixtures("way")
@given(
    width=st.integers(1, 150),
    height=st.integers(1, 80),
    layout=st.sampled_from([TILES, {"blockysize": 7}, {"blockysize": 1000}, {**TILES, "BIGTIFF": "YES"}]),
    corners=st.tuples(*[st.floats(0, 1)] * 4),
    together=st.sampled_from([1, 4000, TOGETHER_BYTES]),
)
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_window_has_the_pixels_of_the_raster(
    tmp_path_factory: pytest.TempPathFactory,
    width: int,
    height: int,
    layout: dict[str, Any],
    corners: tuple[float, ...],
    together: int,
) -> None:
    bands = noise(3, height, width)
    raster = described(write_raster(tmp_path_factory.mktemp("rasters") / "a.tif", bands, **layout))
    assert raster.plain is not None
    (x, right), (y, bottom) = (
        sorted(int(f * (width - 1)) for f in corners[:2]),
        sorted(int(f * (height - 1)) for f in corners[2:]),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.formats.rasters.plain_blocks.TOGETHER_BYTES", together)
        found = read_tile(Handles(), raster, Window(x, y, right - x + 1, bottom - y + 1))
    assert np.array_equal(found.pixels, bands[:, y : bottom + 1, x : right + 1])


@pytest.mark.parametrize(
    ("bands", "layout", "options"),
    [
        (noise(3, 40, 50), {"compress": "deflate"}, {}),
        (noise(3, 40, 50), {"interleave": "band"}, {}),
        (noise(4, 40, 50), TILES, {}),
        (noise(3, 40, 50).astype(np.uint16), TILES, {}),
        (noise(3, 40, 50), TILES, {"bands": (3, 2, 1)}),
    ],
    ids=["compressed", "bands apart", "four bands", "16 bits", "other order"],
)
def test_what_is_stored_otherwise_is_read_by_gdal(
    tmp_path: Path, bands: Any, layout: dict[str, Any], options: dict[str, Any]
) -> None:
    assert described(write_raster(tmp_path / "a.tif", bands, **layout), **options).plain is None


def test_blocks_that_were_never_written_are_read_by_gdal(tmp_path: Path) -> None:
    path = tmp_path / "sparse.tif"
    place = rasterio.Affine(1, 0, 500_000, 0, -1, 4_500_000)
    kind = {"driver": "GTiff", "width": 200, "height": 100, "count": 3, "dtype": "uint8", "transform": place}
    with rasterio.open(path, "w", interleave="pixel", SPARSE_OK=True, **kind, **TILES) as file:
        file.write(noise(3, 16, 32), window=rasterio.windows.Window(32, 16, 32, 16))
    raster = described(path)
    assert raster.plain is None
    found = read_tile(Handles(), raster, Window(30, 10, 50, 40)).pixels
    assert np.array_equal(found[:, 6:22, 2:34], noise(3, 16, 32))
    assert not found[:, :6].any()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("y", [64, 150], ids=["within the window", "before it"])
@pytest.mark.parametrize("layout", [TILES, {"blockysize": 16}], ids=["tiles", "strips"])
def test_a_file_that_was_cut_after_it_was_opened_is_said(tmp_path: Path, layout: dict[str, Any], y: int) -> None:
    path = write_raster(tmp_path / "a.tif", noise(3, 200, 100), **layout)
    raster = described(path)
    path.write_bytes(path.read_bytes()[:30_000])
    with pytest.raises(UnreadableImage, match=r"a\.tif ends within its pixels"):
        read_tile(Handles(), raster, Window(0, y, 100, 50))
    path.unlink()
    with pytest.raises(UnreadableImage, match=r"a\.tif cannot be read"):
        read_tile(Handles(), raster, Window(0, 0, 10, 10))
