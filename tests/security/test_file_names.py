"""File names that are not UTF-8: read by their bytes, written as text that every format can hold."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from commands import run_here
from penstock.prediction.boxes.scenes import open_scene
from penstock.prediction.inputs import image_files
from penstock.storage.locations import readable_name
from picture_making import write_picture
from raster_making import noise, write_raster
from video_making import write_video

ODD = os.fsdecode(b"caf\xe9")


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """Class folders of which one, and a file in the other, have names in Latin-1."""
    for folder in ("dog", ODD):
        for name in ("1", "2", ODD):
            write_picture(tmp_path / "pets" / folder / f"{name}.png")
    return tmp_path / "pets"


def test_names_are_kept_where_they_are_utf8() -> None:
    assert readable_name("tree.jpg") == "tree.jpg"
    assert readable_name("Bäume/木.jpg") == "Bäume/木.jpg"
    assert readable_name(f"Bäume/{ODD}.jpg") == r"Bäume/caf\xe9.jpg"


@pytest.mark.parametrize("form", ["directory", "tfrecord", "webdataset", "hdf5", "numpy"])
def test_check_pack_and_export_give_every_sample_its_name(pets: Path, tmp_path: Path, form: str) -> None:
    assert run_here("check", "images", pets).exit_code == 0
    assert run_here("pack", "images", pets, "-o", tmp_path / "a.pack", "--split", "train").exit_code == 0
    pack = ps.Pack(tmp_path / "a.pack")
    assert sorted(pack.classes) == [r"caf\xe9", "dog"]
    assert sorted(pack.column("key").tolist())[:3] == [r"caf\xe9/1.png", r"caf\xe9/2.png", r"caf\xe9/caf\xe9.png"]
    assert run_here("verify", tmp_path / "a.pack").exit_code == 0
    for name, source in (("raw", pets), ("packed", tmp_path / "a.pack")):
        outcome = run_here("export", source, "--to", form, "-o", tmp_path / name)
        assert outcome.exit_code == 0, outcome.err
        assert "6 samples" in outcome.out + outcome.err


def test_a_flow_gives_the_same_names(pets: Path) -> None:
    (batch,) = ps.Flow(ps.Images(pets), seed=1).shuffle().batch(6)
    names = [ps.Images(pets)[index]["key"] for index in sorted(batch["index"].tolist())]
    assert names[-1] == r"dog/caf\xe9.png"


def test_problems_of_such_files_can_be_shown(pets: Path) -> None:
    (pets / "dog" / f"{ODD}.png").write_bytes(b"nothing")
    done = run_here("check", "images", pets)
    assert done.exit_code == 1
    assert "caf" in done.out + done.err


def test_rasters_videos_and_new_images_are_named_alike(tmp_path: Path) -> None:
    write_raster(tmp_path / "a.tif", noise(3, 40, 40)).rename(tmp_path / f"{ODD}.tif")
    (problem,) = ps.Rasters(tmp_path / f"{ODD}.tif").problems()
    assert "its name is not UTF-8" in problem.what
    (tmp_path / f"{ODD}.tif").unlink()
    write_video(tmp_path / "a.mp4", 4).rename(tmp_path / f"{ODD}.mp4")
    ps.pack(ps.Videos(tmp_path / f"{ODD}.mp4"), tmp_path / "v.pack")
    assert str(ps.Pack(tmp_path / "v.pack").column("group")[0]) == r"caf\xe9"
    picture = write_picture(tmp_path / f"{ODD}.png")
    assert image_files(picture)[0]["key"].endswith(r"caf\xe9.png")
    assert open_scene(picture, None).name.endswith(r"caf\xe9.png")
    assert np.array_equal(image_files(picture)[0]["image"], ps.Images(tmp_path)[0]["image"])
