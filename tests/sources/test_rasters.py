"""Rasters as tiles: their order, their boxes, their place on the map, and what is wrong with them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasterio
from affine import Affine
from hypothesis import given, settings
from hypothesis import strategies as st
from raster_making import noise, write_raster
from rasterio.crs import CRS

import penstock as ps
from penstock.codecs.headers import UnreadableImage
from penstock.errors import DataError, RecipeError
from penstock.geometry import TileGrid, as_boxes, place_boxes
from penstock.samples import Source, Streamed

HEADER = "image_path,xmin,ymin,xmax,ymax,label\n"


def write_table(path: Path, rows: list[str]) -> Path:
    path.write_text(HEADER + "".join(row + "\n" for row in rows))
    return path


def assert_same(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert left.keys() == right.keys()
    for name, value in left.items():
        assert np.array_equal(value, right[name]), name


def test_tiles_come_row_by_row_and_the_last_are_shifted_back_inside(tmp_path: Path) -> None:
    bands = noise(3, 400, 400)
    source = ps.Rasters(write_raster(tmp_path / "a.tif", bands), tile_px=300, overlap=0.25)
    assert isinstance(source, Source)
    assert isinstance(source, Streamed)
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
    with pytest.raises(RecipeError, match=next(iter(options))):
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


# --- reading -------------------------------------------------------------------------------------------------------

LAYOUTS: dict[str, dict[str, Any]] = {
    "strips": {"blockysize": 7},
    "compressed strips": {"compress": "deflate", "blockysize": 32},
    "tiled": {"tiled": True, "blockxsize": 64, "blockysize": 64, "compress": "lzw"},
    "planar": {"interleave": "band", "compress": "deflate", "blockysize": 16},
    "one strip": {"compress": "deflate", "blockysize": 500},
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mask", [False, True])
def test_streaming_gives_the_same_bits_as_reading(tmp_path: Path, layout: str, mask: bool) -> None:
    bands = noise(3, 500, 310)
    inside = (noise(500, 310, seed=1) > 99).astype(np.uint8) * np.uint8(255) if mask else None
    source = ps.Rasters(
        write_raster(tmp_path / "a.tif", bands, mask=inside, **LAYOUTS[layout]), tile_px=90, overlap=0.3
    )
    streamed = [source.parts[0].decode(raw) for raw in source.parts[0].stream()]
    assert len(streamed) == len(source) == source.parts[0].expected
    for index, sample in enumerate(streamed):
        assert_same(sample, source[index])
        x, y, width, height = sample["window"]
        expected = np.moveaxis(bands[:, y : y + height, x : x + width], 0, -1).copy()
        if inside is not None:
            expected[inside[y : y + height, x : x + width] == 0] = 0
        assert np.array_equal(sample["image"], expected)


@given(
    width=st.integers(1, 90),
    height=st.integers(1, 90),
    tile_px=st.integers(5, 40),
    overlap=st.sampled_from([0, 0.05, 0.5, 0.9]),
    start=st.integers(0, 30),
    band_bytes=st.sampled_from([1, 2000, 9000, 1 << 20]),
)
@settings(deadline=None, max_examples=60)
def test_a_stream_may_start_anywhere_and_work_in_any_memory(
    tmp_path_factory: pytest.TempPathFactory,
    width: int,
    height: int,
    tile_px: int,
    overlap: float,
    start: int,
    band_bytes: int,
) -> None:
    path = tmp_path_factory.mktemp("rasters") / "a.tif"
    source = ps.Rasters(write_raster(path, noise(3, height, width), blockysize=16), tile_px=tile_px, overlap=overlap)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.sources.raster_files.BAND_BYTES", band_bytes)
        raws = list(source.parts[0].stream(min(start, len(source))))
    assert [raw.index for raw in raws] == list(range(min(start, len(source)), len(source)))
    for raw in raws:
        assert np.array_equal(raw.data.pixels, source.read(raw.index).data.pixels)


def test_a_stream_reads_every_row_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.sources import raster_windows

    path = write_raster(tmp_path / "a.tif", noise(3, 500, 300), blockysize=64, tiled=True, blockxsize=64)
    source = ps.Rasters(path, tile_px=90, overlap=0.3)
    read: list[tuple[int, int]] = []
    real = raster_windows.read_window

    def counted(handles: Any, path: Path, rules: Any, window: Any, out: Any = None) -> Any:
        read.append((window.y, window.y + window.height))
        return real(handles, path, rules, window, out)

    monkeypatch.setattr(raster_windows, "read_window", counted)
    assert len(list(source.parts[0].stream())) == len(source)
    assert read[0][0] == 0
    assert read[-1][1] == 500
    assert all(above[1] == below[0] for above, below in pairwise(read))
    assert all(stop % 64 == 0 for _, stop in read[:-1])


def test_few_handles_stay_open(tmp_path: Path) -> None:
    for number in range(9):
        write_raster(tmp_path / f"{number}.tif", noise(3, 20, 20, seed=number))
    source = ps.Rasters(tmp_path)
    for index in range(9):
        source.read(index)
    assert len(source._handles._open) == 4


def test_a_source_can_be_pickled_after_use_and_used_by_eight_threads(tmp_path: Path) -> None:
    for number in range(3):
        write_raster(tmp_path / f"{number}.tif", noise(3, 150, 150, seed=number))
    source = ps.Rasters(tmp_path, tile_px=60, overlap=0.2)
    expected = [source[index] for index in range(len(source))]
    copy = pickle.loads(pickle.dumps(source))
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(len(source)), 4))
    with ThreadPoolExecutor(8) as pool:
        for index, sample in zip(order, pool.map(copy.__getitem__, order), strict=True):
            assert_same(sample, expected[index])


MEASURE = """
import sys
import penstock as ps
(part,) = ps.Rasters(sys.argv[1]).parts
print(sum(1 for raw in part.stream()))
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_a_large_striped_raster_streams_in_little_memory(tmp_path: Path) -> None:
    side = 20_000
    path = tmp_path / "large.tif"
    row = noise(3, 1, side)
    layout = {"driver": "GTiff", "width": side, "height": side, "count": 3, "dtype": "uint8"}
    transform = TRANSFORMS["plain"]
    with rasterio.open(path, "w", compress="deflate", zlevel=1, transform=transform, **layout) as file:
        for y in range(0, side, 1000):
            file.write(np.repeat(row, 1000, axis=1), window=((y, y + 1000), (0, side)))
    run = subprocess.run([sys.executable, "-c", MEASURE, path], capture_output=True, text=True, check=True)
    tiles, peak_mb = (int(line) for line in run.stdout.split())
    assert tiles == 53 * 53
    assert peak_mb < 350


# --- damage --------------------------------------------------------------------------------------------------------


def test_every_unreadable_raster_is_a_problem_and_the_others_are_read(tmp_path: Path) -> None:
    whole = write_raster(tmp_path / "whole.tif", noise(3, 300, 300))
    data = whole.read_bytes()
    (tmp_path / "empty.tif").write_bytes(b"")
    (tmp_path / "cut.tif").write_bytes(data[: len(data) // 2])
    (tmp_path / "text.tif").write_text("hello")
    (tmp_path / "zeros.tif").write_bytes(bytes(1000))
    (tmp_path / "start.png").write_bytes(b"\x89PNG\r\n\x1a\n123")
    table = write_table(tmp_path / "t.csv", ["whole.tif,1,2,30,40,oak", "cut.tif,1,2,30,40,oak"])
    source = ps.Rasters(tmp_path, boxes=table)
    problems = source.problems()
    named = sorted(Path(problem.file).name for problem in problems if not problem.warning)
    assert named == ["cut.tif", "empty.tif", "start.png", "text.tif", "zeros.tif"]
    assert len(source) == 1
    assert len(source[0]["boxes"]) == 1


def test_damage_inside_fails_only_the_tiles_that_it_touches(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", noise(3, 200, 300), compress="deflate", blockysize=50)
    source = ps.Rasters(path, tile_px=100, overlap=0)
    expected = [source[index]["image"] for index in range(3, 6)]
    data = bytearray(path.read_bytes())
    middle = len(data) // 8
    data[middle : middle + 200] = bytes(200)
    path.write_bytes(data)
    source = ps.Rasters(path, tile_px=100, overlap=0)
    with pytest.raises(UnreadableImage, match=r"100×100 px at x 100, y 0 of a\.tif cannot be read"):
        source.read(1)
    (part,) = source.parts
    assert [raw.index for raw in part.stream()] == list(range(6))
    with pytest.raises(UnreadableImage, match=r"100×100 px at x 0, y 0 of a\.tif cannot be read"):
        part.decode(next(part.stream()))
    for image, raw in zip(expected, source.parts[0].stream(3), strict=True):
        assert np.array_equal(source.parts[0].decode(raw)["image"], image)
    assert len(ps.Rasters(path, tile_px=100, overlap=0, nodata=0, skip_nodata=True)) == 6


def test_a_photo_that_lies_on_its_side_is_a_problem(tmp_path: Path) -> None:
    import simplejpeg

    plain = simplejpeg.encode_jpeg(np.ascontiguousarray(np.moveaxis(noise(3, 40, 60), 0, -1)))
    exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
    turned = plain[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + plain[2:]
    (tmp_path / "a.jpg").write_bytes(turned)
    (problem,) = ps.Rasters(tmp_path / "a.jpg").problems()
    assert "EXIF orientation is 6" in problem.what
    (tmp_path / "a.jpg").write_bytes(plain)
    assert ps.Rasters(tmp_path / "a.jpg").problems() == []


def test_a_source_is_never_written_to(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", noise(3, 100, 100, dtype="uint16", high=4000))
    state = path.stat().st_mtime_ns
    tmp_path.chmod(0o555)
    try:
        list(ps.Rasters(path, tile_px=50).parts[0].stream())
    finally:
        tmp_path.chmod(0o755)
    assert [file.name for file in tmp_path.iterdir()] == ["a.tif"]
    assert path.stat().st_mtime_ns == state


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
