"""Rasters of any resolution, cut into tiles of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rasterio")

from rasterio.transform import Affine

import penstock as ps
from raster_making import assert_same, noise, write_raster, write_table


def raster_at(path: Path, gsd: float, side: int, crs: str = "EPSG:32617") -> Path:
    """The same ground of 40 m in every resolution, brightest in one corner."""
    place = Affine(gsd, 0, 500_000, 0, -gsd, 4_000_000)
    ground = np.kron(noise(3, 10, 10), np.ones((1, side // 10, side // 10), np.uint8))
    return write_raster(path, ground, crs=crs, transform=place)


def test_rasters_of_two_resolutions_give_tiles_of_one(tmp_path: Path) -> None:
    fine, coarse = raster_at(tmp_path / "fine.tif", 0.05, 800), raster_at(tmp_path / "coarse.tif", 0.2, 200)
    table = write_table(tmp_path / "boxes.csv", ["fine.tif,80,160,240,320,Tree", "coarse.tif,20,40,60,80,Tree"])
    tiles = ps.Rasters([fine, coarse], boxes=table, tile_px=400, overlap=0.0, gsd=0.1)
    one, two = tiles[0], tiles[1]
    assert len(tiles) == 2
    assert one["image"].shape == two["image"].shape == (400, 400, 3)
    np.testing.assert_allclose(one["boxes"], [[40, 80, 120, 160]])
    np.testing.assert_allclose(two["boxes"], one["boxes"])
    np.testing.assert_allclose(one["transform"], [0.1, 0, 500_000, 0, -0.1, 4_000_000])
    np.testing.assert_allclose(two["transform"], one["transform"])
    assert abs(one["image"].astype(int) - two["image"]).mean() < 8  # the same ground
    assert one["window"].tolist() == [0, 0, 800, 800]


def test_tiles_lie_on_the_map_where_their_part_of_the_raster_does(tmp_path: Path) -> None:
    path = raster_at(tmp_path / "fine.tif", 0.05, 800)
    tiles = ps.Rasters(path, tile_px=100, overlap=0.1, gsd=0.15)
    for number in range(len(tiles)):
        sample = tiles[number]
        x, y, width, height = sample["window"].tolist()
        a, _, west, _, e, north = sample["transform"]
        assert (west, north) == pytest.approx((500_000 + 0.05 * x, 4_000_000 - 0.05 * y), abs=1e-9)
        assert (a * sample["image"].shape[1], -e * sample["image"].shape[0]) == pytest.approx(
            (0.05 * width, 0.05 * height)
        )


def test_the_resolution_that_a_raster_has_changes_nothing(tmp_path: Path) -> None:
    path = raster_at(tmp_path / "plain.tif", 0.1, 400)
    plain, asked = ps.Rasters(path, tile_px=150), ps.Rasters(path, tile_px=150, gsd=0.1005)
    for number in range(len(plain)):
        assert_same(plain[number], asked[number])


def test_a_raster_on_no_map_is_a_problem_and_a_wrong_gsd_an_error(tmp_path: Path) -> None:
    photo = write_raster(tmp_path / "photo.tif", noise(3, 50, 50))
    problems = ps.check(ps.Rasters(photo, gsd=0.1)).problems
    assert "on no map" in problems[0].what
    for wrong in (0, -1, True):
        with pytest.raises(ps.OptionError, match="gsd"):
            ps.Rasters(photo, gsd=wrong)


def test_packs_and_training_know_the_resolution(tmp_path: Path) -> None:
    pytest.importorskip("torchvision")
    path = raster_at(tmp_path / "fine.tif", 0.05, 800)
    table = write_table(tmp_path / "boxes.csv", ["fine.tif,80,160,240,320,Tree"])
    pack: Any = ps.pack(ps.Rasters(path, boxes=table, gsd=0.1), tmp_path / "tiles.pack", progress=False)
    assert ps.Detection(backbone="tiny").fitted_to(pack).gsd == pytest.approx(0.1)
    ps.Detection(backbone="tiny", gsd=0.1).check(pack, "training")
    with pytest.raises(ps.DataError, match=r"a pixel is 0\.1 m of ground, and the task wants gsd=0\.3"):
        ps.Detection(backbone="tiny", gsd=0.3).check(pack, "training")
