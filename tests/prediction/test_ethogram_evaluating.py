"""Ethograms against labels, both from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from commands import run_here
from penstock.results.behaviour_scores import score_ethograms
from penstock.results.ethograms import Ethogram

BEHAVIOURS = ("background", "rear", "walk")


def made(name: str, seed: int, frames: int = 60, **options: Any) -> Ethogram:
    rng = np.random.default_rng(seed)
    labels = np.zeros((frames, 3), np.int8)
    labels[np.arange(frames), np.repeat(rng.integers(0, 3, frames // 5), 5)] = 1
    probabilities = np.clip(labels * 0.4 + rng.random((frames, 3)) * 0.6, 0, 1)
    return Ethogram(BEHAVIOURS, probabilities, 0.5, 2, np.arange(frames) / 30, name, labels=labels, **options)


def truth_of(one: Ethogram) -> Ethogram:
    """Labels as an ethogram, so that they can be written in every layout."""
    return Ethogram(BEHAVIOURS, one.labels.astype(np.float32), 0.5, 1, one.times_s, one.name)


@pytest.fixture
def videos(tmp_path: Path) -> list[Ethogram]:
    """Two videos as `predict` leaves them, and their labels in DeepEthogram's layout."""
    (tmp_path / "predictions").mkdir()
    (tmp_path / "labels").mkdir()
    both = [made("mouse.1.mp4", 1), made("mouse.2.mp4", 2, 45)]
    for one in both:
        stem = one.name.removesuffix(".mp4")
        one.save(tmp_path / "predictions" / f"{stem}_ethogram.csv", "tidy")
        one.save(tmp_path / "predictions" / f"{stem}_predictions.csv")
        one.save(tmp_path / "predictions" / f"{stem}_bouts.csv", "bouts")
        one.save(tmp_path / "predictions" / f"{stem}_outputs.h5")
        truth_of(one).save(tmp_path / "labels" / f"{stem}.csv")
    both[0].summary().to_csv(tmp_path / "predictions" / "summary.csv")
    return both


@pytest.mark.parametrize("given", ["predictions", "predictions/*_ethogram.csv", "predictions/*.h5"])
@pytest.mark.parametrize("truth", ["labels/*.csv", "labels", "labels/{stem}.csv"])
def test_files_have_the_scores_of_what_was_saved(
    tmp_path: Path, videos: list[Ethogram], given: str, truth: str
) -> None:
    found = ps.evaluate(str(tmp_path / given), truth=str(tmp_path / truth))
    assert dict(found.scores) == pytest.approx(score_ethograms(videos).scores())
    assert found.table["video"].tolist() == ["mouse.1", "mouse.2"]
    assert found.samples == 105
    assert found.details["not_in_truth"] == []


@pytest.mark.parametrize("layout", ["bouts", "boris", "tidy"])
def test_truth_may_be_events_of_all_videos_or_of_one(tmp_path: Path, videos: list[Ethogram], layout: str) -> None:
    (tmp_path / "events").mkdir()
    for one in videos:
        truth_of(one).save(tmp_path / "events" / f"{one.name.removesuffix('.mp4')}.csv", layout)
    found = ps.evaluate(tmp_path / "predictions", truth=tmp_path / "events")
    assert dict(found.scores) == pytest.approx(score_ethograms(videos).scores())


def test_units_and_subject_of_true_events_can_be_said(tmp_path: Path, videos: list[Ethogram]) -> None:
    rows = ["video,start,stop,behaviour,subject", "mouse.1,0,5,b,one", "mouse.1,2,9,b,two", "mouse.2,1,4,b,one"]
    events = tmp_path / "events.csv"
    events.write_text("\n".join(rows).replace(",b,", f",{BEHAVIOURS[1]},") + "\n")
    with pytest.raises(ps.DataError, match="units='frames' or units='seconds'"):
        ps.evaluate(tmp_path / "predictions", truth=events)
    with pytest.raises(ps.DataError, match="2 subjects: one, two"):
        ps.evaluate(tmp_path / "predictions", truth=events, units="frames")
    found = ps.evaluate(tmp_path / "predictions", truth=events, units="frames", subject="one")
    assert found.samples == 105
    said = run_here("evaluate", tmp_path / "predictions", "--truth", events)
    assert said.exit_code == 3 and "--units frames or --units seconds" in said.err
    options = ("--units", "frames", "--subject", "any", "--json")
    assert run_here("evaluate", tmp_path / "predictions", "--truth", events, *options).exit_code == 0
    with pytest.raises(ps.OptionError, match="units and subject"):
        ps.evaluate("runs/mice", units="frames")


def test_0_and_1_alone_have_no_auroc(tmp_path: Path, videos: list[Ethogram]) -> None:
    found = ps.evaluate(str(tmp_path / "predictions/*_predictions.csv"), truth=tmp_path / "labels")
    assert found.scores["f1"] == pytest.approx(score_ethograms(videos).scores()["f1"])
    assert np.isnan(found.scores["auroc"]) and np.isnan(found.scores["average_precision"])


def test_a_video_without_labels_is_named_and_left_out(tmp_path: Path, videos: list[Ethogram]) -> None:
    (tmp_path / "labels" / "mouse.2.csv").unlink()
    outcome = run_here("evaluate", tmp_path / "predictions", "--truth", tmp_path / "labels", "--json")
    assert outcome.exit_code == 0, outcome.err
    assert "1 video with predictions not in the truth, such as mouse.2." in outcome.err
    facts = json.loads(outcome.out)
    assert facts["samples"] == 60
    assert facts["f1"] == pytest.approx(score_ethograms(videos[:1]).scores()["f1"])
    assert facts["details"]["behaviours"]["walk"]["threshold"] is None


def test_rows_that_do_not_fit_are_said_by_video_and_frame(tmp_path: Path, videos: list[Ethogram]) -> None:
    path = tmp_path / "labels" / "mouse.1.csv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-3]))
    with pytest.raises(ps.DataError, match="57 label rows for the 60 frames of mouse.1: 3 too few"):
        ps.evaluate(tmp_path / "predictions", truth=tmp_path / "labels")


def test_labels_of_none_of_the_videos_are_an_error(tmp_path: Path, videos: list[Ethogram]) -> None:
    for name in ("mouse.1", "mouse.2"):
        (tmp_path / "labels" / f"{name}.csv").rename(tmp_path / "labels" / f"rat{name}.csv")
    with pytest.raises(ps.DataError, match="no labels for any of the 2 videos"):
        ps.evaluate(tmp_path / "predictions", truth=tmp_path / "labels")


def test_predictions_of_other_behaviours_are_not_mixed(tmp_path: Path, videos: list[Ethogram]) -> None:
    other = Ethogram(("background", "sniff"), np.zeros((5, 2)), 0.5, 1, np.arange(5.0), "x.mp4")
    other.save(tmp_path / "predictions" / "x_ethogram.csv", "tidy")
    with pytest.raises(ps.DataError, match="has the behaviours background, sniff, and"):
        ps.evaluate(tmp_path / "predictions", truth=tmp_path / "labels")


def test_options_of_boxes_are_refused(tmp_path: Path, videos: list[Ethogram]) -> None:
    with pytest.raises(ps.OptionError, match="are for boxes"):
        ps.evaluate(tmp_path / "predictions", truth=tmp_path / "labels", min_score=0.5)


def test_boxes_with_such_names_are_still_boxes(tmp_path: Path) -> None:
    (tmp_path / "found").mkdir()
    rows = ",image_path,xmin,ymin,xmax,ymax,label\n0,a.png,1,1,5,5,Tree\n"
    (tmp_path / "found" / "a_predictions.csv").write_text(rows)
    (tmp_path / "truth.csv").write_text(rows)
    assert ps.evaluate(tmp_path / "found", truth=tmp_path / "truth.csv").scores["box_recall"] == 1


@pytest.mark.parametrize("names", [("left", "right"), ("x", "file"), ("left", "right", "top", "bottom")])
def test_behaviours_may_be_called_as_columns_of_boxes(tmp_path: Path, names: tuple[str, ...]) -> None:
    for folder in ("found", "labels"):
        (tmp_path / folder).mkdir()
    rng = np.random.default_rng(3)
    labels = np.eye(len(names) + 1, dtype=np.int8)[rng.integers(0, len(names) + 1, 30)]
    one = Ethogram(("background", *names), labels * 0.9, 0.5, 1, np.arange(30) / 30, "m.mp4", labels=labels)
    one.save(tmp_path / "found" / "m_ethogram.csv", "tidy")
    one.save(tmp_path / "labels" / "m.csv")
    outcome = run_here("evaluate", tmp_path / "found", "--truth", f"{tmp_path}/labels/{{stem}}.csv", "--json")
    assert outcome.exit_code == 0, outcome.err
    assert json.loads(outcome.out)["scores"]["f1"] == 1
