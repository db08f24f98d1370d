"""Behaviours of synthetic scenes are learned: by what they look like, by how they move, and by motion alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.cli.demo_animals import write_animal_videos, write_direction_videos

pytest.importorskip("av")

# A minute or two on two cores of their own, and several where others work too.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

# Small frames and short clips: enough for scenes that are seen well, and learned within a minute or two.
TASK = {"size": "tiny", "frames": 7, "flow_epochs": 6, "sequence_epochs": 20}


def packed(folder: Path, videos: int, frames: int, write: Any) -> ps.Pack:
    write(folder, videos, frames, (96, 96), 3)
    source = ps.Videos(folder / "videos", labels=str(folder / "labels" / "{stem}.csv"), size=(64, 64))
    return ps.pack(source, folder / "scenes.pack", split="train=0.75,val=0.25", progress=False)


def trained(task: ps.Behaviour, pack: ps.Pack, folder: Path, epochs: int) -> ps.Run:
    options = {"batch_size": 16, "learning_rate": 1.5e-3, "progress": False, "logger": False}
    return ps.train(task, pack, folder=folder, epochs=epochs, **options)


def test_an_animal_that_rests_walks_turns_and_rears_is_told_apart(tmp_path: Path) -> None:
    pack = packed(tmp_path, 16, 120, write_animal_videos)
    # Seen from above there is no up.
    settings: dict[str, Any] = {
        **TASK,
        "flow_epochs": 8,
        "clips_per_epoch": 480,
        "rotation": 180.0,
        "vertical_flip": 0.5,
    }
    run = trained(ps.Behaviour(**settings), pack, tmp_path / "run", 6)
    assert run.scores()["f1"] >= 0.9


def test_a_direction_is_learned_by_the_motion_stream_and_not_by_the_spatial_one(tmp_path: Path) -> None:
    pack = packed(tmp_path, 4, 240, write_direction_videos)
    run = trained(ps.Behaviour(**TASK, clips_per_epoch=300, flip=0.0), pack, tmp_path / "run", 4)
    frames = ps.Run(run.folder / "stages" / "frames").scores()
    assert frames["motion_f1"] >= 0.85
    assert frames["spatial_f1"] <= 0.7
    assert run.scores()["f1_without_background"] >= 0.85
