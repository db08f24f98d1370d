"""`penstock export` finds out what it is given, and says what it wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from commands import run_here
from exporting_trips import mice, pets, trees
from project_making import write_project


def test_videos_are_converted_at_their_own_size_or_the_one_asked_for(tmp_path: Path) -> None:
    mice(tmp_path)
    pattern, labels = str(tmp_path / "m*.*"), tmp_path / "events.csv"
    done = run_here("export", pattern, "--labels", labels, "--to", "directory", "--codec", "jpg", "-o", tmp_path / "a")
    assert done.exit_code == 0, done.err
    assert "20 samples as directory" in done.out and "videos: 2, 25 to 30 frames a second" in done.out
    assert ps.Videos(tmp_path / "a", size=None)[0]["image"].shape == (64, 96, 3)
    done = run_here(
        "export", pattern, "--to", "hdf5", "--layout", "deepethogram", "--size", "32x24", "-o", tmp_path / "b"
    )
    assert done.exit_code == 0, done.err
    assert ps.Videos(tmp_path / "b", size=None)[0]["image"].shape == (24, 32, 3)


def test_a_project_a_pack_and_folders_are_recognised(tmp_path: Path) -> None:
    write_project(tmp_path / "mice")
    trees(tmp_path)
    pets(tmp_path)
    for source, to, said in (
        ("mice", "hdf5", "24 samples as hdf5"),
        ("trees.pack", "coco", "splits: train 3, val 3"),
        ("trees/boxes.csv", "voc", "6 samples as voc"),
        ("pets", "webdataset", "splits: train 6, val 6"),
    ):
        done = run_here("export", tmp_path / source, "--to", to, "-o", tmp_path / f"out-{to}")
        assert done.exit_code == 0 and said in done.out, done.err


def test_what_has_no_place_and_what_is_skipped_is_told(tmp_path: Path) -> None:
    pets(tmp_path)
    broken = tmp_path / "pets" / "val" / "cat" / "b0.png"
    broken.write_bytes(b"this is no image")
    done = run_here("export", tmp_path / "pets", "--to", "directory", "-o", tmp_path / "out")
    assert done.exit_code == 3 and "b0.png" in done.err
    skip = ("--on-bad-sample", "skip")
    done = run_here("export", tmp_path / "pets", "--to", "directory", "-o", tmp_path / "rest", *skip)
    assert done.exit_code == 0 and "skipped 1 sample:" in done.out and "val/cat/b0.png" in done.out


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (("pets.pack", "--to", "tfrecrd"), 2, "Did you mean 'tfrecord'?"),
        (("pets.pack", "--to", "hdf5", "--layout", "npz"), 2, "--layout npz is not a layout of hdf5"),
        (("pets.pack", "--to", "hdf5", "--labels", "x.csv"), 2, "--labels says nothing to Pack"),
        (("pets.pack", "trees.pack", "--to", "hdf5"), 2, "takes one path"),
        (("pets.pack", "trees/boxes.csv", "--to", "hdf5"), 2, "data of several kinds"),
        (("nowhere", "--to", "hdf5"), 4, "does not exist"),
    ],
)
def test_mistakes_are_said_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], exit_code: int, message: str
) -> None:
    pets(tmp_path)
    trees(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = run_here("export", *arguments, "-o", "out")
    assert done.exit_code == exit_code and message in done.err
    assert not (tmp_path / "out").exists()
