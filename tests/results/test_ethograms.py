"""Ethograms: from probabilities to predictions, tables and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest

from penstock.errors import OptionError
from penstock.results.ethograms import Ethogram
from penstock.results.feature_files import Column, FeatureFile

BEHAVIOURS = ("background", "walk", "rear")


def ethogram(probabilities: Any, **options: Any) -> Ethogram:
    values = np.asarray(probabilities, np.float32)
    settings = {"thresholds": 0.5, "min_bout_frames": 1, "times_s": np.arange(len(values)) / 10, "name": "a/mouse.mp4"}
    return Ethogram(BEHAVIOURS, values, **(settings | options))


def some(frames: int = 40, **options: Any) -> Ethogram:
    return ethogram(np.random.default_rng(3).random((frames, 3)), **options)


def test_predictions_go_by_the_threshold_of_each_behaviour() -> None:
    found = ethogram([[0.9, 0.3, 0.3], [0.1, 0.2, 0.9]], thresholds=[0.5, 0.3, 0.8])
    assert found.predictions.tolist() == [[0, 1, 0], [0, 0, 1]]


def test_background_is_where_nothing_else_is_whatever_its_probability() -> None:
    found = ethogram([[0.0, 0.1, 0.1], [1.0, 0.9, 0.1]])
    assert found.predictions[:, 0].tolist() == [1, 0]


def test_short_bouts_become_background() -> None:
    found = ethogram([[0, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1], [0, 0, 1]], min_bout_frames=[9, 2, 2])
    assert found.predictions.tolist() == [[1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1]]
    assert found.changed_frame_count == 1 and found.changed_frames.tolist() == [1, 1, 0]
    assert found.summary()["changed_frames"].tolist() == [1, 1, 0]


@pytest.mark.parametrize("exclusive", [False, True])
def test_a_behaviour_that_fills_a_clip_is_never_taken_for_a_short_bout(exclusive: bool) -> None:
    found = ethogram(np.tile([0.0003, 0.9987, 0.001], (56, 1)), min_bout_frames=[1, 99, 94], exclusive=exclusive)
    assert (found.predictions == [0, 1, 0]).all()
    assert found.changed_frame_count == 0


def test_one_at_a_time_a_dropped_bout_gets_its_more_likely_neighbour() -> None:
    walk, rear, rest = [0.1, 0.8, 0.1], [0.05, 0.4, 0.55], [0.8, 0.1, 0.1]
    found = ethogram([walk] * 3 + [rear] * 2 + [rest] * 3, exclusive=True, min_bout_frames=[1, 1, 4])
    assert found.predictions.argmax(axis=1).tolist() == [1] * 5 + [0] * 3
    assert (found.predictions.sum(axis=1) == 1).all()
    assert found.changed_frame_count == 2


def test_probabilities_near_a_threshold_are_counted() -> None:
    found = ethogram([[0.5, 0.51, 0.9], [0.5, 0.485, 0.3], [0.5, 0.1, 0.69]], thresholds=[0.5, 0.5, 0.7])
    assert found.near_threshold.tolist() == [0, 2, 1]
    close = ethogram([[0.2, 0.405, 0.395], [0.1, 0.8, 0.1]], exclusive=True)
    assert close.near_threshold.tolist() == [0, 1, 0]


def test_one_behaviour_at_a_time_is_the_most_likely() -> None:
    found = ethogram([[0.2, 0.5, 0.3], [0.4, 0.3, 0.3]], exclusive=True, thresholds=0.99)
    assert found.predictions.tolist() == [[0, 1, 0], [1, 0, 0]]


def test_one_at_a_time_stays_one_when_gaps_are_filled() -> None:
    walk, rear = [0.1, 0.6, 0.3], [0.1, 0.4, 0.5]
    found = ethogram([walk] * 4 + [rear] * 2 + [walk] * 4, exclusive=True, min_bout_frames=[1, 4, 2])
    assert (found.predictions.sum(axis=1) == 1).all()
    assert found.predictions[4:6, 2].all()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"thresholds": [0.5, 0.5]}, "2 values for 3 behaviours"),
        ({"times_s": np.arange(3)}, "expected 3 frames × 3 behaviours"),
        ({"times_s": np.arange(40)[::-1]}, "go back"),
        ({"labels": np.zeros((40, 2))}, "labels of a/mouse.mp4"),
        ({"probabilities": np.full((40, 3), np.nan)}, "in frame 0"),
        ({"behaviours": ("rear", "rear", "walk")}, "a name twice"),
    ],
)
def test_what_would_shift_frames_is_refused(wrong: dict[str, Any], words: str) -> None:
    given = {"behaviours": BEHAVIOURS, "probabilities": np.zeros((40, 3)), "thresholds": 0.5, "min_bout_frames": 1}
    given |= {"times_s": np.arange(40.0), "name": "a/mouse.mp4"}
    with pytest.raises(OptionError, match=words):
        Ethogram(**(given | wrong))


def test_the_table_has_time_predictions_and_probabilities() -> None:
    found = some()
    table = found.table()
    assert list(table.columns[:6]) == ["video", "frame", "time_s", *BEHAVIOURS]
    assert np.array_equal(table[list(BEHAVIOURS)].to_numpy(), found.predictions)
    assert np.array_equal(table["rear_probability"].to_numpy(), found.probabilities[:, 2])
    assert set(table["video"]) == {"mouse.mp4"}


def test_the_summary_counts_time_and_bouts() -> None:
    found = ethogram([[0, 1, 0], [0, 1, 0], [0, 0, 0], [0, 1, 0]], times_s=[0, 0.1, 0.2, 0.6])
    rows = found.summary().set_index("behaviour")
    assert rows.loc["walk", ["frames", "bouts"]].tolist() == [3, 2]
    assert rows.loc["walk", "time_s"] == pytest.approx(0.3)
    assert rows.loc["walk", "mean_bout_s"] == pytest.approx(0.15)
    assert rows.loc["background", "time_s"] == pytest.approx(0.4)
    assert rows["share"].sum() == pytest.approx(1)
    assert np.isnan(rows.loc["rear", "mean_bout_s"])


def test_times_of_the_summary_have_no_noise_in_their_last_digits() -> None:
    found = some(5000, times_s=np.arange(5000) / 30)
    assert all(len(str(value).partition(".")[2]) <= 6 for value in found.summary()["time_s"])


def test_the_default_table_is_as_deepethogram_keeps_it(tmp_path: Path) -> None:
    found = some()
    lines = found.save(tmp_path / "mouse.csv").read_text().splitlines()
    assert lines[0] == ",background,walk,rear"
    assert lines[1:] == [",".join(map(str, [n, *row])) for n, row in enumerate(found.predictions.tolist())]


def test_background_comes_first_in_deepethogram_tables(tmp_path: Path) -> None:
    turned = Ethogram(("rear", "background"), np.array([[1.0, 0], [0, 1]]), 0.5, 1, np.arange(2.0), "m.mp4")
    without = Ethogram(("rear",), np.array([[1.0], [0]]), 0.5, 1, np.arange(2.0), "m.mp4")
    for one in (turned, without):
        assert one.save(tmp_path / "m.csv").read_text() == ",background,rear\n0,0,1\n1,1,0\n"


def test_boris_events_come_in_pairs_and_in_time(tmp_path: Path) -> None:
    found = ethogram([[0, 1, 0], [0, 1, 1], [0, 0, 1]])
    table = pd.read_csv(found.save(tmp_path / "mouse.tsv"), sep="\t")
    assert table[["Time", "Behavior", "Status"]].to_numpy().tolist() == [
        [0.0, "walk", "START"],
        [0.1, "rear", "START"],
        [0.2, "walk", "STOP"],
        [0.3, "rear", "STOP"],
    ]
    assert set(table["FPS"]) == {10.0}


def test_times_of_tables_are_exact_to_the_microsecond_after_ten_hours(tmp_path: Path) -> None:
    found = some(times_s=36_000 + np.arange(40) / 30)
    table = pd.read_csv(found.save(tmp_path / "mouse.csv", "tidy"))
    assert np.allclose(table["time_s"], found.times_s, atol=1e-6, rtol=0)
    assert np.array_equal(table["walk_probability"].to_numpy(np.float32), found.probabilities[:, 1])


@pytest.mark.parametrize("layout", ["tidy", "bouts", "summary"])
def test_parquet_holds_the_same_tables(tmp_path: Path, layout: str) -> None:
    found = some()
    expected = {"tidy": found.table, "bouts": found.bouts, "summary": found.summary}[layout]()
    read = pd.read_parquet(found.save(tmp_path / "mouse.parquet", layout))
    pd.testing.assert_frame_equal(read, expected, check_dtype=False)


@pytest.mark.parametrize(
    ("name", "layout", "words"),
    [
        ("mouse.cvs", None, "Did you mean '.csv'"),
        ("mouse.csv", "bout", "Did you mean 'bouts'"),
        ("mouse.parquet", "boris", "not one of tidy"),
        ("mouse.h5", "tidy", "is for tables"),
        ("nowhere/mouse.csv", None, "there is no folder"),
    ],
)
def test_files_that_cannot_be_written_are_refused(tmp_path: Path, name: str, layout: str | None, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        some().save(tmp_path / name, layout)
    assert not list(tmp_path.iterdir())


def test_hdf5_has_the_groups_that_scripts_for_deepethogram_look_for(tmp_path: Path) -> None:
    found, rng = some(thresholds=[0.5, 0.25, 0.75]), np.random.default_rng(0)
    target = tmp_path / "mouse_outputs.h5"
    blocks = {"spatial_features": rng.random((40, 8)), "logits": rng.normal(size=(40, 3))}
    growing = FeatureFile(target, {"spatial_features": Column(8), "logits": Column(3)}, {"model": "a"})
    growing.append(blocks)
    found.save(target, logits=blocks["logits"], features=growing, features_group="resnet18")
    growing.discard()
    with h5py.File(target) as file:
        for group in ("sequence", "tgmj"):
            assert np.array_equal(file[group]["P"][()], found.probabilities)
            assert np.allclose(file[group]["logits"][()], blocks["logits"])
            assert file[group]["thresholds"][()].tolist() == [0.5, 0.25, 0.75]
            assert [name.decode() for name in file[group]["class_names"][()]] == list(BEHAVIOURS)
        frames = file["resnet18"]
        assert np.allclose(frames["spatial_features"][()], blocks["spatial_features"])
        assert np.allclose(frames["P"][()], 1 / (1 + np.exp(-blocks["logits"])))
    assert [path.name for path in tmp_path.iterdir()] == ["mouse_outputs.h5"]


def test_names_beyond_ascii_are_kept_in_hdf5(tmp_path: Path) -> None:
    one = Ethogram(("schnüffeln",), np.zeros((2, 1)), 0.5, 1, np.arange(2.0), "m.mp4")
    with h5py.File(one.save(tmp_path / "m.h5")) as file:
        assert file["sequence"]["class_names"][0].decode() == "schnüffeln"


def test_features_of_fewer_frames_are_refused_and_nothing_is_left(tmp_path: Path) -> None:
    target = tmp_path / "m.h5"
    with FeatureFile(target, {"logits": Column(3)}, {}) as growing:
        growing.append({"logits": np.zeros((39, 3))})
        with pytest.raises(OptionError, match="39 frames for the 40"):
            some().save(target, features=growing)
    growing.discard()
    assert not list(tmp_path.iterdir())


def test_an_ethogram_without_frames_can_be_saved(tmp_path: Path) -> None:
    empty = ethogram(np.zeros((0, 3)))
    for layout in ("deepethogram", "tidy", "bouts", "boris", "summary"):
        assert empty.save(tmp_path / f"{layout}.csv", layout).read_text()
    assert empty.duration_s == 0


@pytest.mark.parametrize("frames", [0, 1, 14, 40])
def test_a_table_that_is_written_in_pieces_is_the_whole_table(
    tmp_path: Path, frames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = some(frames)
    whole = found.save(tmp_path / "whole.csv", "tidy").read_text()
    monkeypatch.setattr("penstock.results.ethogram_files._WRITTEN_ROWS", 7)
    assert found.save(tmp_path / "pieces.csv", "tidy").read_text() == whole
    assert whole.count("\n") == frames + 1
