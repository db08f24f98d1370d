"""A wrong option is an error that says what is legal, before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from exporting_trips import ALL_FORMATS
from made_sources import EveryKind, Numbers, Pictures, Reels


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"to": "tfrecords"}, "Did you mean 'tfrecord'"),
        ({"to": "hdf5", "layout": "deepetogram"}, "Did you mean 'deepethogram'"),
        ({"to": "tfrecord", "layout": "named"}, r"which has auto.*named \(directory\)"),
        ({"to": "tfrecord", "codec": "pgn"}, "Did you mean 'png'"),
        ({"to": "tfrecord", "codec": "raw"}, "does not fit tfrecord: its images are files"),
        ({"to": "numpy", "codec": "png"}, "whose arrays hold pixels"),
        ({"to": "hdf5", "layout": "deepethogram", "codec": "raw"}, "does not fit the layout deepethogram"),
        ({"to": "yolo", "shard_mb": 5}, "yolo has no shards"),
        ({"to": "tfrecord", "shard_samples": 0}, "must be a whole number from 1"),
        ({"to": "tfrecord", "quality": 101}, "must be a whole number from 1 to 100"),
        ({"to": "tfrecord", "size": "12"}, "WIDTHxHEIGHT"),
        ({"to": "tfrecord", "shard_sample": 3}, "Did you mean 'shard_samples'"),
        ({"to": "tfrecord", "on_bad_sample": "drop"}, "raise, skip"),
    ],
)
def test_a_wrong_option_names_the_legal_ones(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ps.OptionError, match=message):
        ps.export(Pictures(3), tmp_path / "out", **options)
    assert not list(tmp_path.iterdir())


def test_a_folder_is_not_called_like_a_file(tmp_path: Path) -> None:
    with pytest.raises(ps.OptionError, match=r"an export is a folder.*such as .*mice"):
        ps.export(Pictures(3), tmp_path / "mice.h5", to="hdf5")


@pytest.mark.parametrize("to", ["yolo", "coco", "voc", "csv"])
def test_formats_of_boxes_need_boxes(tmp_path: Path, to: str) -> None:
    with pytest.raises(ps.OptionError, match=f"{to} is for boxes"):
        ps.export(Pictures(3), tmp_path / "out", to=to)


@pytest.mark.parametrize("to", ["directory", "yolo"])
def test_formats_of_images_need_images(tmp_path: Path, to: str) -> None:
    with pytest.raises(ps.OptionError, match=f"{to} is for images"):
        ps.export(Numbers(3), tmp_path / "out", to=to)


def test_samples_without_images_have_formats_too(tmp_path: Path) -> None:
    for to in ("tfrecord", "hdf5", "webdataset", "numpy"):
        assert ps.export(Numbers(30), tmp_path / to, to=to).samples == 30


def test_what_is_no_source_is_said(tmp_path: Path) -> None:
    with pytest.raises(ps.OptionError, match="is not a source"):
        ps.export([1, 2], tmp_path / "out", to="hdf5")  # type: ignore[arg-type]


def test_the_layout_of_deepethogram_is_for_videos(tmp_path: Path) -> None:
    with pytest.raises(ps.OptionError, match="is for frames of videos"):
        ps.export(Pictures(3), tmp_path / "out", to="hdf5", layout="deepethogram")
    with pytest.raises(ps.OptionError, match="one file for each video"):
        ps.export(Reels(3), tmp_path / "out", to="hdf5", shard_mb=3)


def test_shards_end_where_the_options_say(tmp_path: Path) -> None:
    made = ps.export(Pictures(25), tmp_path / "a", to="tfrecord", shard_samples=10)
    assert [len(ps.open(path)) for path in sorted(made.path.glob("*.tfrecord"))] == [10, 10, 5]
    made = ps.export(Pictures(60), tmp_path / "b", to="webdataset", codec="png", size="200x200", shard_mb=1)
    sizes = [path.stat().st_size for path in sorted(made.path.glob("*.tar"))]
    assert len(sizes) > 3 and all(1 << 20 <= size < 1.3 * (1 << 20) for size in sizes[:-1])


@pytest.mark.parametrize("to", ALL_FORMATS)
def test_the_bytes_depend_neither_on_workers_nor_on_the_executor(tmp_path: Path, to: str) -> None:
    from made_sources import folder_bytes

    options = {"to": to, "size": "40x30"}
    ps.export(EveryKind(40), tmp_path / "one", workers=1, **options)
    ps.export(EveryKind(40), tmp_path / "many", workers=5, **options)
    reference = folder_bytes(tmp_path / "one")
    assert folder_bytes(tmp_path / "many") == reference
    if to == "tfrecord":
        ps.export(EveryKind(40), tmp_path / "processes", workers=2, executor="process", **options)
        assert folder_bytes(tmp_path / "processes") == reference


@pytest.mark.parametrize("to", ["tfrecord", "webdataset"])
def test_images_of_a_pack_may_be_sent_from_processes(tmp_path: Path, to: str) -> None:
    from made_sources import folder_bytes

    pack = ps.pack(Pictures(12), tmp_path / "pictures.pack", codec="jpeg")
    ps.export(pack, tmp_path / "threads", to=to)
    ps.export(pack, tmp_path / "processes", to=to, workers=1, executor="process")
    assert folder_bytes(tmp_path / "processes") == folder_bytes(tmp_path / "threads")
