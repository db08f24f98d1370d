from __future__ import annotations

import csv
import itertools
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from penstock.cli.demo_animals import (
    ANIMAL_BEHAVIOURS,
    DIRECTION_BEHAVIOURS,
    animal_poses,
    write_animal_videos,
    write_direction_videos,
)


def labels_of(video: Path) -> tuple[list[str], NDArray[np.int64]]:
    with (video.parent.parent / "labels" / f"{video.stem}.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    return header, np.array(rows, int)


def frames_of(video: Path) -> NDArray[np.int64]:
    with av.open(str(video)) as container:
        return np.stack([frame.to_ndarray(format="gray") for frame in container.decode(video=0)]).astype(int)


def test_every_frame_of_an_animal_has_one_behaviour(tmp_path: Path) -> None:
    for video in write_animal_videos(tmp_path, 2, 90, (96, 64), seed=4):
        header, rows = labels_of(video)
        assert header == ["", *ANIMAL_BEHAVIOURS]
        assert rows[:, 0].tolist() == list(range(90))
        assert (rows[:, 1:].sum(axis=1) == 1).all()
        assert frames_of(video).shape == (90, 64, 96)


def test_labels_say_how_the_animal_moved_from_the_frame_before() -> None:
    poses = animal_poses(np.random.default_rng(1), 2000, (128, 96))
    for before, now in itertools.pairwise(poses):
        moved, turned = (before.x, before.y) != (now.x, now.y), before.heading != now.heading
        assert ANIMAL_BEHAVIOURS[now.behaviour] == (
            "walk" if moved else "turn" if turned else "rear" if now.lift else "background"
        )
    assert {pose.behaviour for pose in poses} == {0, 1, 2, 3}


@pytest.mark.parametrize("size", [(64, 64), (64, 96), (200, 32)])
def test_the_animal_never_leaves_the_picture(size: tuple[int, int]) -> None:
    margin = 0.15 * min(size)
    for seed in range(10):
        poses = animal_poses(np.random.default_rng(seed), 1500, size)
        assert {pose.behaviour for pose in poses} == {0, 1, 2, 3}
        assert all(margin <= pose.x <= size[0] - margin and margin <= pose.y <= size[1] - margin for pose in poses)


def test_the_ball_goes_where_its_labels_say(tmp_path: Path) -> None:
    (video,) = write_direction_videos(tmp_path, 1, 120, (96, 64), seed=2)
    header, rows = labels_of(video)
    assert header == ["", *DIRECTION_BEHAVIOURS]
    dark = frames_of(video) < 100
    centres = (dark * np.arange(96)).sum(axis=(1, 2)) / dark.sum(axis=(1, 2))
    steps = np.diff(centres, prepend=centres[0])[1:]
    labels = rows[1:, 1:].argmax(axis=1)
    assert np.array_equal(np.where(steps > 0.9, 1, np.where(steps < -0.9, 2, 0)), labels)


def test_the_same_seed_gives_the_same_files(tmp_path: Path) -> None:
    (one,) = write_animal_videos(tmp_path / "one", 1, 20, (64, 64), seed=5)
    (two,) = write_animal_videos(tmp_path / "two", 1, 20, (64, 64), seed=5)
    assert one.read_bytes() == two.read_bytes()
