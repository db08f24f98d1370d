"""Windows of rasters as networks are shown them: the pixels of the file, however many threads read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from penstock.errors import HopError
from penstock.formats.rasters import raster_files
from penstock.formats.rasters.raster_windows import open_raster
from penstock.prediction.boxes.scenes import open_scene, window_plan, windows_ahead
from raster_making import noise, write_raster

TILES = {"tiled": True, "blockxsize": 64, "blockysize": 48}
LAYOUTS: dict[str, dict[str, Any]] = {
    "plain tiles": TILES,
    "deflated tiles": {**TILES, "compress": "deflate", "predictor": 2},
    "plain strips": {"blockysize": 7},
    "compressed strips": {"compress": "lzw", "blockysize": 32},
    "bands apart": {"interleave": "band", "compress": "deflate", "blockysize": 16},
    "with nodata": {**TILES, "compress": "deflate", "nodata": 7},
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("band_bytes", [1 << 26, 1])
def test_windows_that_are_held_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, workers: int, band_bytes: int
) -> None:
    monkeypatch.setattr(raster_files, "SHARED_BAND_BYTES", band_bytes)
    bands = noise(3, 500, 310)
    bands[:, 100:300, 50:60] = 7
    path = write_raster(tmp_path / "a.tif", bands, **LAYOUTS[layout])
    scene = open_scene(path, None)
    plan = window_plan(310, 500, tile_px=96, overlap=0.2, stride=32)
    held = sorted(windows_ahead(scene, plan, np.arange(len(plan.grid)), workers))
    assert [one.number for one in held] == list(range(len(plan.grid)))
    if "nodata" in LAYOUTS[layout]:
        bands[:, (bands == 7).all(axis=0)] = 0
    whole = np.zeros((500 + 96, 310 + 96, 3), np.uint8)
    whole[:500, :310] = np.moveaxis(bands, 0, -1)
    for number, pixels in held:
        x, y = plan.grid.window(number)[:2]
        np.testing.assert_array_equal(pixels, whole[y : y + 96, x : x + 96])


def test_a_window_of_an_image_that_is_stored_as_one_is_not_copied(tmp_path: Path) -> None:
    scene = open_scene(write_raster(tmp_path / "a.tif", noise(3, 192, 192), **TILES), None)
    plan = window_plan(192, 192, tile_px=96, overlap=0, stride=32)
    first, second = list(scene.read(plan, np.arange(2), 1))
    assert np.shares_memory(first.pixels.base, second.pixels.base)


@pytest.mark.parametrize("workers", [1, 2])
def test_damage_is_named_however_many_threads_decode(tmp_path: Path, workers: int) -> None:
    path = write_raster(tmp_path / "a.tif", noise(3, 500, 310), **LAYOUTS["deflated tiles"])
    with open_raster(path) as file:
        offset = int(file.get_tag_item("BLOCK_OFFSET_2_5", "TIFF", bidx=1))
    content = bytearray(path.read_bytes())
    content[offset : offset + 200] = bytes(200)
    path.write_bytes(content)
    scene = open_scene(path, None)
    plan = window_plan(310, 500, tile_px=96, overlap=0, stride=32)
    with pytest.raises(HopError, match=r"a\.tif"):
        list(windows_ahead(scene, plan, np.arange(len(plan.grid)), workers))
