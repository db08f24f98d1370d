"""Any source can be exported: rasters, projects, every format that Penstock reads, and user's own sources."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from exporting_trips import pets, trees
from made_sources import Pictures, Reels
from project_making import BEHAVIOURS, write_project
from raster_making import noise, write_raster, write_table
from video_making import number_shown


def test_a_deepethogram_project_has_one_output_for_each_video(tmp_path: Path) -> None:
    project = ps.DeepEthogram(write_project(tmp_path / "mice"), size=None)
    made = ps.export(project, tmp_path / "out", to="hdf5", layout="deepethogram", codec="png")
    assert [video["name"] for video in made.videos] == ["m1_a", "m1_b", "m2_a"]
    again = ps.Videos(made.path, labels=made.path, size=None)
    assert again.classes == BEHAVIOURS and len(again) == len(project)
    for index in range(len(project)):
        assert np.array_equal(again[index]["image"], project[index]["image"])
        assert np.array_equal(again[index]["labels"], project[index]["labels"])


def test_deepethogram_finds_an_exported_folder_in_its_project(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "mice")
    made = ps.export(
        ps.DeepEthogram(folder, size=None), tmp_path / "out", to="hdf5", layout="deepethogram", codec="png"
    )
    for own in (folder / "DATA").iterdir():
        if own.is_dir():
            next(own.glob("*.avi")).unlink()
            (made.path / own.name / f"{own.name}.h5").rename(own / f"{own.name}.h5")
    again = ps.DeepEthogram(folder, size=None)
    assert [number_shown(again[index]["image"]) for index in range(8)] == list(range(8))


def test_rasters_are_exported_as_tiles_with_their_boxes(tmp_path: Path) -> None:
    write_raster(tmp_path / "a.tif", noise(3, 90, 70))
    table = write_table(tmp_path / "boxes.csv", ["a.tif,1,2,30,40.5,oak", "a.tif,35,30,45,50,pine"])
    rasters = ps.Rasters(tmp_path / "a.tif", boxes=table, tile_px=40, overlap=0.1)
    made = ps.export(rasters, tmp_path / "out", to="csv")
    again = ps.Boxes(made.path / "boxes.csv")
    assert made.left_out == ("window", "transform", "crs") and len(again) == len(rasters)
    for index in range(len(rasters)):
        assert np.array_equal(again[index]["image"], rasters[index]["image"])
        assert np.array_equal(again[index]["boxes"], rasters[index]["boxes"])
    held = ps.export(rasters, tmp_path / "held", to="directory")
    assert held.left_out == ()
    assert (held.path / "labels.csv").read_text().splitlines()[0] == "path,group,key,window,transform,crs"


@pytest.mark.parametrize("between", ["tfrecord", "webdataset", "hdf5", "numpy"])
def test_one_format_becomes_another(tmp_path: Path, between: str) -> None:
    pack = pets(tmp_path)
    first = ps.export(pack, tmp_path / "first", to=between)
    direct = ps.export(pack, tmp_path / "direct", to="directory", codec="png")
    second = ps.export(ps.open(first.path), tmp_path / "second", to="directory", codec="png")
    images = {path.name: path.read_bytes() for path in (direct.path / "images").rglob("*.png")}
    assert {path.name: path.read_bytes() for path in (second.path / "images").rglob("*.png")} == images
    assert second.splits == direct.splits


def test_a_part_of_a_source_and_several_sources_are_sources(tmp_path: Path) -> None:
    pack = trees(tmp_path)
    assert ps.export(pack.split("val"), tmp_path / "val", to="yolo").splits == {"val": 3}
    assert ps.export(ps.concat([pack, pack]), tmp_path / "both", to="coco").samples == 12


def test_parts_that_stream_are_read_once_and_in_order(tmp_path: Path) -> None:
    source = Reels(9, 4)
    starts: list[int] = []
    for part in source.parts:
        stream = part.stream
        part.stream = lambda start=0, stream=stream: starts.append(start) or stream(start)  # type: ignore[method-assign]
    made = ps.export(source, tmp_path / "out", to="directory")
    assert starts == [0, 0] and [video["frames"] for video in made.videos] == [9, 4]
    # They have no clock.
    assert [video["fps"] for video in made.videos] == [None, None]
    assert (made.path / "labels" / "reel.csv").read_text().splitlines()[:3] == [",rest,move", "0,0,1", "1,1,0"]


def test_frames_that_do_not_follow_one_another_are_refused_where_a_file_is_written_at_once(tmp_path: Path) -> None:
    mixed = ps.Subset(Reels(4, 4), [0, 4, 1, 5])
    with pytest.raises(ps.OptionError, match="do not follow one another"):
        ps.export(mixed, tmp_path / "out", to="hdf5")
    made = ps.export(mixed, tmp_path / "files", to="directory")
    assert sorted(path.name for path in (made.path / "reel").iterdir()) == ["000000000.png", "000000001.png"]


def test_images_of_several_sizes_do_not_fit_into_one_array(tmp_path: Path) -> None:
    pack = trees(tmp_path)
    for options in ({"to": "numpy"}, {"to": "hdf5", "codec": "raw"}):
        with pytest.raises(ps.OptionError, match=r"one size for all images.*size='WIDTHxHEIGHT'"):
            ps.export(pack, tmp_path / "out", **options)


def test_images_that_others_cannot_read_become_png(tmp_path: Path) -> None:
    source = Pictures(3, codec="webp")
    made = ps.export(source, tmp_path / "records", to="tfrecord")
    records = ps.open(made.path)
    assert bytes(records.read(0).data[:4]) == b"\x89PNG"
    assert np.array_equal(records[0]["image"], source.decode(source.read(0))["image"])
    kept = ps.export(source, tmp_path / "kept", to="directory")
    assert sorted(path.suffix for path in (kept.path / "images").rglob("*.*")) == [".webp"] * 3
