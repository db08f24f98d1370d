"""Rasters as tiles: their order, their boxes, their place on the map, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from affine import Affine
from rasterio.crs import CRS

import penstock as ps
from penstock.errors import DataError, OptionError
from penstock.geometry import TileGrid, as_boxes, place_boxes
from penstock.samples import Source
from raster_making import assert_same, noise, write_raster, write_table


def test_tiles_come_row_by_row_and_the_last_are_shifted_back_inside(tmp_path: Path) -> None:
    bands = noise(3, 400, 400)
    source = ps.Rasters(write_raster(tmp_path / "a.tif", bands), tile_px=300, overlap=0.25)
    assert isinstance(source, Source)
    assert source.parts
    assert source.column("key").tolist() == ["a.tif#0_0", "a.tif#100_0", "a.tif#0_100", "a.tif#100_100"]
    for sample in (source[index] for index in range(4)):
        x, y, width, height = sample["window"]
        assert np.array_equal(sample["image"], np.moveaxis(bands[:, y : y + height, x : x + width], 0, -1))


def test_a_raster_smaller_than_a_tile_is_one_smaller_tile(tmp_path: Path) -> None:
    source = ps.Rasters(write_raster(tmp_path / "a.tif", noise(3, 30, 700)), tile_px=400, overlap=0)
    assert [tuple(source[index]["window"]) for index in range(len(source))] == [(0, 0, 400, 30), (300, 0, 400, 30)]


def test_photos_that_are_on_no_map_are_rasters_too(tmp_path: Path) -> None:
    bands = noise(3, 50, 60)
    sample = ps.Rasters(write_raster(tmp_path / "a.png", bands, driver="PNG"), tile_px=40, overlap=0)[3]
    assert sample["crs"] == ""
    assert sample["transform"].tolist() == [1, 0, 20, 0, 1, 10]
    assert sample["window"].dtype == np.int32
    assert np.array_equal(sample["image"], np.moveaxis(bands[:, 10:, 20:], 0, -1))


def test_a_folder_a_pattern_and_a_list_name_the_same_rasters(tmp_path: Path) -> None:
    first = write_raster(tmp_path / "flight 1.tif", noise(3, 20, 20))
    (tmp_path / "flüge").mkdir()
    second = write_raster(tmp_path / "flüge" / "flight_2.tif", noise(3, 20, 20))
    (tmp_path / "notes.txt").write_text("not a raster")
    keys = ps.Rasters(tmp_path).column("key").tolist()
    assert keys == ["flight 1.tif#0_0", "flight_2.tif#0_0"]
    assert ps.Rasters(f"{tmp_path}/**/*.tif").column("key").tolist() == keys
    assert ps.Rasters([first, second]).column("key").tolist() == keys


def test_rasters_of_the_same_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for day in ("monday", "tuesday"):
        (tmp_path / day).mkdir()
        write_raster(tmp_path / day / "a.tif", noise(3, 20, 20))
    source = ps.Rasters(tmp_path)
    assert source.column("group").tolist() == ["monday/a.tif", "tuesday/a.tif"]
    assert source.column("key").tolist() == ["monday/a.tif#0_0", "tuesday/a.tif#0_0"]


def test_groups_come_from_the_name_when_a_pattern_says_so(tmp_path: Path) -> None:
    for name in ("north_1.tif", "north_2.tif", "south_1.tif"):
        write_raster(tmp_path / name, noise(3, 20, 20))
    source = ps.Rasters(tmp_path, group_from="{site}_*")
    assert source.column("group").tolist() == ["north", "north", "south"]
    write_raster(tmp_path / "other.tif", noise(3, 20, 20))
    (problem,) = ps.Rasters(tmp_path, group_from="{site}_*").problems()
    assert "other.tif" in problem.file
    assert "does not fit" in problem.what


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    for nothing in (tmp_path, tmp_path / "a.tif", []):
        with pytest.raises(DataError):
            ps.Rasters(nothing)


def test_a_column_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="key, group"):
        ps.Rasters(write_raster(tmp_path / "a.tif", noise(9, 9))).column("label")


# --- boxes ---------------------------------------------------------------------------------------------------------


def test_boxes_are_clipped_and_translated_to_their_tiles(tmp_path: Path) -> None:
    raster = write_raster(tmp_path / "a.tif", noise(3, 100, 200))
    table = write_table(
        tmp_path / "a.csv", ["a.tif,10,20,30,40,pine", "a.tif,90,0,120,10,oak", "a.tif,95,50,105,60,pine"]
    )
    source = ps.Rasters(raster, boxes=table, tile_px=100, overlap=0)
    assert source.problems() == []
    assert source.classes == ("oak", "pine")
    assert source[0]["boxes"].tolist() == [[10, 20, 30, 40], [95, 50, 100, 60]]
    assert source[0]["box_label"].tolist() == [1, 1]
    assert source[1]["boxes"].tolist() == [[0, 0, 20, 10]]
    assert source.parts[0].label_counts == {0: 1, 1: 2}
    assert source.lost_boxes_count == 1
    assert source.notes() == {"boxes_assigned": 1}


def test_lost_boxes_can_be_dropped_or_be_errors_with_their_line(tmp_path: Path) -> None:
    raster = write_raster(tmp_path / "a.tif", noise(3, 100, 200))
    table = write_table(tmp_path / "a.csv", ["a.tif,10,20,30,40,oak", "a.tif,95,50,105,60,oak"])
    dropped = ps.Rasters(raster, boxes=table, tile_px=100, overlap=0, lost_boxes="drop")
    assert sum(len(dropped[index]["boxes"]) for index in range(2)) == 1
    assert dropped.notes() == {"boxes_dropped": 1}
    (problem,) = ps.Rasters(raster, boxes=table, tile_px=100, overlap=0, lost_boxes="error").problems()
    assert problem.file == str(table)
    assert problem.row == 3
    assert "no tile of a.tif keeps more than 0.5" in problem.what


def test_min_kept_decides_how_much_of_a_box_a_tile_must_hold(tmp_path: Path) -> None:
    raster = write_raster(tmp_path / "a.tif", noise(3, 100, 200))
    table = write_table(tmp_path / "a.csv", ["a.tif,90,0,120,10,oak"])
    source = ps.Rasters(raster, boxes=table, tile_px=100, overlap=0, min_kept=0.2)
    assert [source[index]["boxes"].tolist() for index in range(2)] == [[[90, 0, 100, 10]], [[0, 0, 20, 10]]]


def test_rasters_without_boxes_are_negatives(tmp_path: Path) -> None:
    first = write_raster(tmp_path / "a.tif", noise(3, 20, 20))
    second = write_raster(tmp_path / "b.tif", noise(3, 20, 20))
    source = ps.Rasters([second, first], boxes=write_table(tmp_path / "t.csv", ["a.tif,1,2,3,4,oak"]))
    assert source.column("key").tolist() == ["b.tif#0_0", "a.tif#0_0"]
    assert source[0]["boxes"].shape == (0, 4)
    assert source[0]["box_label"].dtype == np.int64
    assert source[1]["boxes"].tolist() == [[1, 2, 3, 4]]


def test_rows_of_other_images_are_problems_unless_they_are_to_be_left_out(tmp_path: Path) -> None:
    raster = write_raster(tmp_path / "a.tif", noise(3, 20, 20))
    table = write_table(tmp_path / "t.csv", ["a.tif,1,2,3,4,oak", "b.tif,1,2,3,4,oak"])
    (problem,) = ps.Rasters(raster, boxes=table).problems()
    assert problem.row == 3
    source = ps.Rasters(raster, boxes=table, ignore_other_images=True)
    assert source.problems() == []
    assert len(source[0]["boxes"]) == 1


def test_splits_and_groups_come_from_columns_of_the_table(tmp_path: Path) -> None:
    raster = write_raster(tmp_path / "a.tif", noise(3, 20, 20))
    table = tmp_path / "t.csv"
    table.write_text("image_path,xmin,ymin,xmax,ymax,label,split,site\na.tif,1,2,3,4,oak,val,north\n")
    source = ps.Rasters(raster, boxes=table, group_from="site")
    assert source.problems() == []
    assert source.parts[0].split == "val"
    assert source.column("split").tolist() == ["val"]
    assert source.column("group").tolist() == ["north"]


def test_changing_a_sample_does_not_change_the_source(tmp_path: Path) -> None:
    raster = write_raster(tmp_path / "a.tif", noise(3, 20, 20))
    source = ps.Rasters(raster, boxes=write_table(tmp_path / "t.csv", ["a.tif,1,2,3,4,oak"]))
    source[0]["boxes"][:] = 9
    source[0]["box_label"][:] = 9
    assert source[0]["boxes"].tolist() == [[1, 2, 3, 4]]
    assert source[0]["box_label"].tolist() == [0]


@pytest.mark.parametrize(
    "options", [{"lost_boxes": "keep"}, {"min_kept": 1}, {"min_kept": -1}, {"tile_px": 0}, {"overlap": 1}]
)
def test_wrong_options_are_told_before_anything_is_read(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        ps.Rasters("there is no such file", **options)


def test_the_stamp_of_a_part_changes_with_boxes_tiles_and_pixels(tmp_path: Path) -> None:
    raster = write_raster(tmp_path / "a.tif", noise(3, 20, 20))
    table = write_table(tmp_path / "t.csv", ["a.tif,1,2,3,4,oak"])
    moved = write_table(tmp_path / "u.csv", ["a.tif,1,2,3,5,oak"])

    def stamp(**options: Any) -> bytes:
        return ps.Rasters(raster, **options).parts[0].stamp()

    assert stamp(boxes=table) == stamp(boxes=table)
    made = [
        stamp(),
        stamp(boxes=table),
        stamp(boxes=moved),
        stamp(tile_px=10),
        stamp(bands="3,2,1"),
        stamp(scale="2-98"),
    ]
    assert len(set(made)) == len(made)


# --- nodata tiles --------------------------------------------------------------------------------------------------


def test_tiles_without_data_are_left_out_when_asked_unless_they_have_boxes(tmp_path: Path) -> None:
    bands = noise(3, 200, 300)
    bands[:, :100, 100:] = 0
    bands[:, 99, 150] = [0, 5, 0]
    raster = write_raster(tmp_path / "a.tif", bands, nodata=0)
    options = {"tile_px": 100, "overlap": 0}
    assert len(ps.Rasters(raster, **options)) == 6
    some = ps.Rasters(raster, skip_nodata=True, **options)
    assert some.column("key").tolist() == [f"a.tif#{at}" for at in ("0_0", "100_0", "0_100", "100_100", "200_100")]
    assert some.notes() == {"nodata_tiles_left_out": 1}
    assert [raw.index for raw in some.parts[0].stream()] == [0, 1, 2, 3, 4]
    for index, raw in enumerate(some.parts[0].stream()):
        assert_same(some.parts[0].decode(raw), some[index])
    after = write_table(tmp_path / "u.csv", ["a.tif,110,110,120,120,oak"])
    assert ps.Rasters(raster, boxes=after, skip_nodata=True, **options)[3]["boxes"].tolist() == [[10, 10, 20, 20]]
    table = write_table(tmp_path / "t.csv", ["a.tif,210,10,220,20,oak"])
    labelled = ps.Rasters(raster, boxes=table, skip_nodata=True, **options)
    assert len(labelled) == 6
    assert labelled[2]["boxes"].tolist() == [[10, 10, 20, 20]]


@pytest.mark.parametrize("kind", ["alpha", "mask", "nan"])
def test_alpha_mask_and_nan_leave_tiles_out_too(tmp_path: Path, kind: str) -> None:
    bands, inside = noise(3, 100, 200), np.full((100, 200), 255, np.uint8)
    inside[:, :100] = 0
    if kind == "alpha":
        raster = write_raster(tmp_path / "a.tif", np.concatenate([bands, inside[None]]), photometric="RGB", alpha="YES")
    elif kind == "mask":
        raster = write_raster(tmp_path / "a.tif", bands, mask=inside)
    else:
        raster = write_raster(tmp_path / "a.tif", np.where(inside, bands, np.nan).astype(np.float32))
    source = ps.Rasters(raster, tile_px=100, overlap=0, skip_nodata=True)
    assert source.column("key").tolist() == ["a.tif#100_0"]


# --- the map -------------------------------------------------------------------------------------------------------

TRANSFORMS = {
    "plain": Affine(0.1, 0, 404211.9, 0, -0.1, 3285142.9),
    "rotated": Affine.translation(500_000, 4_000_000) @ Affine.rotation(31.7) @ Affine.scale(0.25, -0.25),
    "not square": Affine(0.3, 0, 1000, 0, -0.7, 2000),
    "degrees": Affine(1e-6, 0, -81.98989, 0, -1e-6, 29.69250),
}


@pytest.mark.parametrize("kind", TRANSFORMS)
def test_tiles_go_to_the_map_and_back(tmp_path: Path, kind: str) -> None:
    whole = TRANSFORMS[kind]
    crs = "EPSG:4326" if kind == "degrees" else "EPSG:32617"
    raster = write_raster(tmp_path / "a.tif", noise(3, 500, 700), crs=crs, transform=whole)
    source = ps.Rasters(raster, tile_px=300, overlap=0.1)
    for index in range(len(source)):
        sample = source.annotations(index)
        x, y, width, height = (int(value) for value in sample["window"])
        tile = Affine(*sample["transform"])
        assert sample["crs"] == crs
        for column, row in ((0, 0), (width, 0), (0, height), (width, height), (12.25, 99.5)):
            on_map = tile @ (column, row)
            assert on_map == pytest.approx(whole @ (x + column, y + row), rel=1e-14)
            assert ~whole @ on_map == pytest.approx((x + column, y + row), abs=1e-4)


def test_a_map_without_a_number_is_written_as_wkt(tmp_path: Path) -> None:
    own = CRS.from_proj4("+proj=tmerc +lat_0=10 +lon_0=7.123 +k=0.9999 +x_0=5 +y_0=6 +ellps=WGS84 +units=m")
    raster = write_raster(tmp_path / "a.tif", noise(3, 50, 70), crs=own, transform=TRANSFORMS["plain"])
    text = ps.Rasters(raster)[0]["crs"]
    assert CRS.from_wkt(text) == own


@pytest.mark.parametrize("kind", TRANSFORMS)
def test_a_layer_drawn_on_the_map_lands_on_the_tiles_and_goes_back(tmp_path: Path, kind: str) -> None:
    import geopandas
    import shapely

    whole = TRANSFORMS[kind]
    crs = "EPSG:4326" if kind == "degrees" else "EPSG:32617"
    raster = write_raster(tmp_path / "a.tif", noise(3, 500, 700), crs=crs, transform=whole)
    boxes = np.array([[10, 20, 40, 60], [310, 120, 333, 160], [640, 450, 690, 500]])
    corners = [[(x1, y1), (x2, y1), (x2, y2), (x1, y2)] for x1, y1, x2, y2 in boxes.tolist()]
    shapes = [shapely.Polygon([whole @ corner for corner in box]) for box in corners]
    layer = tmp_path / "crowns.gpkg"
    geopandas.GeoDataFrame({"label": ["oak"] * 3}, geometry=shapes, crs=crs).to_file(layer)
    source = ps.Rasters(raster, boxes=layer, tile_px=300, overlap=0.1)
    assert [problem for problem in source.problems() if not problem.warning] == []
    back = set()
    for sample in (source.annotations(index) for index in range(len(source))):
        for x1, y1, x2, y2 in sample["boxes"].astype(np.float64):
            tile = Affine(*sample["transform"])
            pixels = [*(~whole @ (tile @ (x1, y1))), *(~whole @ (tile @ (x2, y2)))]
            back.add(tuple(np.round(pixels, 1).tolist()))
    assert back >= {tuple(box) for box in boxes.astype(float).tolist()}


def test_what_only_gdal_reads_is_a_raster_too(tmp_path: Path) -> None:
    bands = noise(3, 50, 60)
    write_raster(tmp_path / "a.tif", bands)
    source = '<SimpleSource><SourceFilename relativeToVRT="1">a.tif</SourceFilename></SimpleSource>'
    band = f'<VRTRasterBand dataType="Byte" band="1">{source}</VRTRasterBand>'
    (tmp_path / "a.vrt").write_text(f'<VRTDataset rasterXSize="60" rasterYSize="50">{band}</VRTDataset>')
    table = write_table(tmp_path / "t.csv", ["a.vrt,1,2,3,4,oak"])
    made = ps.Rasters(tmp_path / "a.vrt", boxes=table, allow_drivers=["VRT"])
    assert made.problems() == []
    assert np.array_equal(made[0]["image"][:, :, 0], bands[0])
    assert made[0]["boxes"].tolist() == [[1, 2, 3, 4]]


# --- real files ----------------------------------------------------------------------------------------------------


def test_the_yell_tile_keeps_all_of_its_574_crowns(shared_data: Path) -> None:
    raster = shared_data / "trees_neon" / "2019_YELL_2_528000_4978000_image_crop2.png"
    source = ps.Rasters(raster, boxes=raster.with_suffix(".xml"), tile_px=500, overlap=0)
    assert source.problems() == []
    assert len(source) == 25
    assert source.lost_boxes_count == 3
    dropped = ps.Rasters(raster, boxes=raster.with_suffix(".xml"), tile_px=500, overlap=0, lost_boxes="drop")
    assert _count_boxes(source) == _count_boxes(dropped) + 3
    crowns = ps.read_pascal_voc(raster.with_suffix(".xml"))[["xmin", "ymin", "xmax", "ymax"]]
    placed = place_boxes(as_boxes(crowns), TileGrid.over(2299, 2472, 500, 0), 0.5)
    assert len(set(placed.boxes)) == 574 - 3


def _count_boxes(source: ps.Rasters) -> int:
    return sum(len(source.annotations(index)["boxes"]) for index in range(len(source)))


def test_real_plots_and_four_band_rasters_are_read(shared_data: Path) -> None:
    plots = ps.Rasters(shared_data / "neon_eval" / "rgb")
    assert plots.problems() == []
    assert len(plots) == 100
    assert plots[0]["crs"].startswith("EPSG:326")
    trees = ps.Rasters(str(shared_data / "urban_trees_points" / "*" / "*.tif"))
    assert trees.problems() == []
    assert [trees[index]["image"].shape for index in range(len(trees))] == [(256, 256, 3)] * 12


def test_a_look_counts_rasters_and_boxes(tmp_path: Path) -> None:
    write_raster(tmp_path / "a.tif", noise(3, 100, 100))
    (tmp_path / "boxes.csv").write_text("image_path,xmin,ymin,xmax,ymax,label\na.tif,40,40,60,60,T\na.tif,1,1,9,9,T\n")
    source = ps.Rasters(tmp_path / "a.tif", boxes=tmp_path / "boxes.csv", tile_px=50, overlap=0)
    assert str(ps.check(source)) == "4 samples, 1 class, 1 raster, 2 boxes: no problems"
    assert ps.check(ps.Rasters(tmp_path / "a.tif", tile_px=50)).counts.get("boxes") is None


@pytest.mark.parametrize(
    "option",
    [
        {"min_kept": 0.3},
        {"lost_boxes": "drop"},
        {"classes": ["Tree"]},
        {"point_buffer": 3},
        {"clip_boxes": True},
        {"split_from": "fold"},
        {"ignore_other_images": True},
    ],
    ids=lambda option: next(iter(option)),
)
def test_an_option_about_boxes_is_refused_where_there_are_none(tmp_path: Path, option: dict[str, Any]) -> None:
    path = write_raster(tmp_path / "a.tif", noise(3, 50, 60))
    with pytest.raises(ps.OptionError, match=f"{next(iter(option))}: this is about boxes, and there are none"):
        ps.Rasters(path, **option)


def test_a_point_buffer_without_points_is_named(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", noise(3, 50, 60))
    table = write_table(tmp_path / "t.csv", ["a.tif,1,2,3,4,oak"])
    for source in (ps.Rasters(path, boxes=table, point_buffer=3), ps.Boxes(table, point_buffer="2m")):
        (problem,) = source.problems()
        assert problem.warning and "has no effect: there are no points" in problem.what
