"""Predictions as labels of the next round: every format that an ethogram is saved in can be read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest

import penstock as ps
from penstock.results.ethograms import Ethogram
from video_making import write_video

BEHAVIOURS = ("background", "rear", "walk")
FRAMES = 40
FILES = {
    "mouse_predictions.csv": "deepethogram",
    "mouse_ethogram.csv": "tidy",
    "mouse_ethogram.parquet": "tidy",
    "mouse_bouts.csv": "bouts",
    "mouse_bouts.parquet": "bouts",
    "mouse_events.csv": "boris",
    "mouse_events.tsv": "boris",
    "mouse_outputs.h5": None,
}


@pytest.fixture(params=["even", "uneven"])
def mouse(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A video at 30 frames per second, or one whose clock jumps."""
    steps = np.random.default_rng(0).integers(11, 90, FRAMES)
    uneven = {"milliseconds": (np.cumsum(steps) - steps[0]).tolist()} if request.param == "uneven" else {"rate": 30}
    write_video(tmp_path / "other.mp4", 3)
    return write_video(tmp_path / "mouse.mp4", FRAMES, **uneven)


def predicted(video: Path, seed: int = 1) -> Ethogram:
    times = ps.Videos(video).column("time")
    probabilities = np.random.default_rng(seed).random((FRAMES, 3))
    return Ethogram(BEHAVIOURS, probabilities, 0.6, 1, times, str(video))


def labels_of(video: Path, labels: Any, **options: Any) -> tuple[tuple[str, ...], np.ndarray, list[str]]:
    source = ps.Videos(video, labels=labels, **options)
    return source.classes, source.column("labels"), [str(one) for one in source.problems() if not one.warning]


@pytest.mark.parametrize("name", FILES)
def test_an_ethogram_comes_back_as_the_labels_it_holds(mouse: Path, tmp_path: Path, name: str) -> None:
    made = predicted(mouse)
    classes, labels, problems = labels_of(mouse, made.save(tmp_path / name, FILES[name]))
    assert not problems
    assert classes == BEHAVIOURS
    assert np.array_equal(labels, made.predictions)


@pytest.mark.parametrize("name", FILES)
def test_files_of_predictions_find_their_video_among_several(mouse: Path, tmp_path: Path, name: str) -> None:
    made = predicted(mouse)
    made.save(tmp_path / name, FILES[name])
    source = ps.Videos([mouse, tmp_path / "other.mp4"], labels=str(tmp_path / f"*_*{Path(name).suffix}"))
    own = source.parts[0]
    vectors = [own.decode(raw)["labels"] for raw in own.stream()]
    assert np.array_equal(vectors, made.predictions)


def test_corrections_by_hand_count_and_frames_can_be_taken_out(mouse: Path, tmp_path: Path) -> None:
    made = predicted(mouse)
    table = pd.read_csv(made.save(tmp_path / "mouse_ethogram.csv", "tidy"))
    table.loc[5, list(BEHAVIOURS)] = [0, 1, 1]
    table.loc[7, list(BEHAVIOURS)] = -1
    table.to_csv(tmp_path / "mouse_ethogram.csv", index=False)
    labels = labels_of(mouse, tmp_path / "mouse_ethogram.csv")[1]
    assert labels[5].tolist() == [0, 1, 1]
    assert labels[7].tolist() == [-1, -1, -1]
    assert np.array_equal(np.delete(labels, [5, 7], axis=0), np.delete(made.predictions, [5, 7], axis=0))


def test_a_video_without_a_bout_is_all_background(mouse: Path, tmp_path: Path) -> None:
    nothing = Ethogram(BEHAVIOURS, np.zeros((FRAMES, 3)), 0.5, 1, np.arange(FRAMES) / 30, str(mouse))
    for layout in ("bouts", "boris"):
        file = nothing.save(tmp_path / "mouse_bouts.csv", layout)
        _, labels, problems = labels_of(mouse, file, classes=BEHAVIOURS)
        assert not problems
        assert (labels == [1, 0, 0]).all()


def test_outputs_of_deepethogram_are_read_by_their_thresholds(mouse: Path, tmp_path: Path) -> None:
    likely = np.random.default_rng(2).random((FRAMES, 3)).astype(np.float32)
    with h5py.File(tmp_path / "mouse_outputs.h5", "w") as file:
        for group in ("resnet18", "tgmj"):
            file[f"{group}/P"] = likely if group == "tgmj" else 1 - likely
            file[f"{group}/thresholds"] = np.array([0.5, 0.25, 0.75], np.float32)
            file[f"{group}/class_names"] = np.array([name.encode() for name in BEHAVIOURS], "S")
    classes, labels, problems = labels_of(mouse, tmp_path / "mouse_outputs.h5")
    assert (classes, problems) == (BEHAVIOURS, [])
    assert np.array_equal(labels[:, 1:], likely[:, 1:] >= [0.25, 0.75])
    assert np.array_equal(labels[:, 0], ~labels[:, 1:].any(axis=1))


def wrong_hdf5(path: Path, kind: str) -> Path:
    if kind == "text":
        path.write_text("no HDF5")
        return path
    with h5py.File(path, "w") as file:
        if kind == "links":
            file["tgmj"] = h5py.SoftLink("/gone")
        if kind == "names":
            file["sequence/predictions"], file["sequence/class_names"] = np.zeros((FRAMES, 3)), np.array([b"rear"])
    return path


@pytest.mark.parametrize(
    ("kind", "words"), [("text", "cannot be opened as HDF5"), ("links", "has no group"), ("names", "shape (40, 3)")]
)
def test_hdf5_without_an_ethogram_is_a_problem(tmp_path: Path, kind: str, words: str) -> None:
    video = write_video(tmp_path / "mouse.mp4", 3)
    with pytest.raises(ps.DataError) as caught:
        raise ps.DataError(ps.Videos(video, labels=wrong_hdf5(tmp_path / "mouse.h5", kind)).problems())
    assert words in str(caught.value)


def test_a_table_of_two_videos_is_not_taken_for_one(mouse: Path, tmp_path: Path) -> None:
    one, two = predicted(mouse).table(), predicted(mouse).table().assign(video="other.mp4")
    pd.concat([one, two.assign(frame=two["frame"] + FRAMES)]).to_csv(tmp_path / "mouse.csv", index=False)
    problems = [str(one) for one in ps.Videos(mouse, labels=tmp_path / "mouse.csv").problems()]
    assert any("line 42" in text and "from here on of 'other.mp4'" in text for text in problems)
