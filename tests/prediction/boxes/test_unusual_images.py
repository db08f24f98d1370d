"""Rasters and photos as people have them: alpha, 16 bits, floats, four bands, nodata, one colour, wrong paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
pytest.importorskip("rasterio")
pytest.importorskip("geopandas")

from rasterio.enums import ColorInterp  # noqa: E402
from rasterio.transform import Affine  # noqa: E402

import penstock as ps  # noqa: E402
from penstock.codecs.images import encode_image  # noqa: E402
from penstock.reporting.box_plots import plot_boxes  # noqa: E402
from raster_making import write_raster  # noqa: E402
from spot_making import MODEL, picture  # noqa: E402

CORNERS = ["xmin", "ymin", "xmax", "ymax"]
PIXELS = picture(200, 160, 3)
BANDS = PIXELS.transpose(2, 0, 1)
UTM = {"crs": "EPSG:32617", "transform": Affine(0.1, 0, 500_000, 0, -0.1, 4_000_000)}


def found(path: Path, **options: Any) -> Any:
    return ps.predict(MODEL, path, tile_px=128, **options)


@pytest.fixture
def plain(tmp_path: Path) -> Any:
    table = found(write_raster(tmp_path / "plain.tif", BANDS, **UTM))
    assert len(table) > 5
    return table


def assert_same(one: Any, other: Any) -> None:
    np.testing.assert_allclose(one[CORNERS], other[CORNERS], atol=0.01)


def test_alpha_and_a_fourth_band_change_nothing(tmp_path: Path, plain: Any) -> None:
    opaque = np.concatenate([BANDS, np.full((1, 160, 200), 255, np.uint8)])
    colours = [ColorInterp.red, ColorInterp.green, ColorInterp.blue, ColorInterp.alpha]
    assert_same(found(write_raster(tmp_path / "alpha.tif", opaque, colours=colours, **UTM)), plain)
    infrared = np.concatenate([BANDS, 255 - BANDS[:1]])
    others = [ColorInterp.red, ColorInterp.green, ColorInterp.blue, ColorInterp.undefined]
    assert_same(found(write_raster(tmp_path / "infrared.tif", infrared, colours=others, **UTM), bands="1,2,3"), plain)
    (tmp_path / "alpha.png").write_bytes(encode_image(np.ascontiguousarray(opaque.transpose(1, 2, 0)), "png"))
    assert_same(found(tmp_path / "alpha.png"), plain)


@pytest.mark.parametrize(("kind", "factor"), [("uint16", 12), ("float32", 0.01)])
def test_numbers_of_other_kinds_become_levels_by_the_rules_of_packing(
    tmp_path: Path, plain: Any, kind: str, factor: float
) -> None:
    path = write_raster(tmp_path / f"{kind}.tif", (BANDS.astype(np.float64) * factor).astype(kind), **UTM)
    table = found(path)
    assert len(table) == len(plain)
    assert_same(table.sort_values(["ymin", "xmin"]), plain.sort_values(["ymin", "xmin"]))


def test_nothing_is_found_where_there_are_no_data(tmp_path: Path, plain: Any) -> None:
    bands = BANDS.copy()
    bands[:, :, 100:] = 0
    table = found(write_raster(tmp_path / "half.tif", bands, nodata=0, **UTM))
    assert 0 < len(table) < len(plain)
    assert ((table["xmin"] + table["xmax"]) / 2 < 104).all()


@pytest.mark.parametrize("level", [0, 255])
def test_images_of_one_colour_give_an_empty_table_that_can_be_drawn_and_saved(tmp_path: Path, level: int) -> None:
    path = tmp_path / "flat.png"
    path.write_bytes(encode_image(np.full((90, 120, 3), level, np.uint8), "png"))
    table: Any = ps.predict(MODEL, path)
    assert len(table) == 0
    assert plot_boxes(table, tmp_path / "plot.png").is_file()
    assert table.save(tmp_path / "none.csv").read_text().startswith("xmin,ymin,xmax,ymax,label,score,image_path")


def test_boxes_lie_inside_of_the_image_and_are_found_once_at_seams(tmp_path: Path) -> None:
    pixels = np.full((200, 200, 3), 20, np.uint8)
    pixels[:, ::7] = 30
    for x, y in ((0, 0), (192, 96), (96, 192), (56, 56), (64, 64), (120, 8)):  # corners, borders and seams
        pixels[y : y + 8, x : x + 8] = 250
    (tmp_path / "spots.png").write_bytes(encode_image(pixels, "png"))
    cut, whole = ps.predict(MODEL, tmp_path / "spots.png", tile_px=64), ps.predict(MODEL, tmp_path / "spots.png")
    corners = cut[CORNERS].to_numpy()
    assert corners.min() >= 0
    assert corners.max() <= 200
    assert_same(cut.sort_values(CORNERS), whole.sort_values(CORNERS))


def test_images_with_one_name_in_two_folders_are_told_apart(tmp_path: Path) -> None:
    for folder, seed in (("a", 1), ("b", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "plot.png").write_bytes(encode_image(picture(120, 120, seed), "png"))
    table: Any = ps.predict(MODEL, tmp_path)
    names = {str(tmp_path / folder / "plot.png") for folder in "ab"}
    assert set(table["image_path"]) == set(table.image_sizes) == names


def test_wrong_paths_are_said(tmp_path: Path) -> None:
    with pytest.raises(ps.PenstockError, match=r"missing\.tif"):
        ps.predict(MODEL, tmp_path / "missing.tif")
    with pytest.raises(ps.PenstockError):
        ps.predict(MODEL, str(tmp_path / "*.tif"))


def test_strips_and_tiles_of_any_layout_are_read(tmp_path: Path, plain: Any) -> None:
    for number, layout in enumerate(({"blockysize": 1}, {"tiled": True, "blockxsize": 64, "blockysize": 64})):
        path = write_raster(tmp_path / f"{number}.tif", BANDS, compress="deflate", **layout, **UTM)
        assert_same(found(path), plain)
