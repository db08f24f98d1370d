"""Behaviour on the page of a Run: scores, what was taken for what, ethograms."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.reporting.ethogram_pictures import CELLS, Lane, cells_of, ethogram_picture
from penstock.results.behaviour_scores import score_ethograms
from penstock.results.ethogram_tables import ethogram_details
from penstock.results.ethograms import Ethogram
from reporting.run_folders import finished_run

NAMES = ("background", "walk", "rear<b>")


def ethogram(name: str = "videos/mouse.mp4", *, labelled: bool = True) -> Ethogram:
    """Ten seconds: walking from 2 to 5 in truth, from 3 to 6 as predicted; never a rear."""
    probabilities, labels = np.zeros((100, 3), np.float32), np.zeros((100, 3), np.int8)
    probabilities[30:60, 1], labels[20:50, 1] = 0.9, 1
    labels[:, 0] = 1 - labels[:, 1]
    labels[90:] = -1
    return Ethogram(NAMES, probabilities, 0.5, 1, np.arange(100) / 10, name, labels=labels if labelled else None)


def page_with(tmp_path: Path, details: dict[str, Any]) -> str:
    return ps.report(finished_run(tmp_path / "mice", details=details)).read_text(encoding="utf-8")


def details_of(*ethograms: Ethogram) -> dict[str, Any]:
    return {**score_ethograms(ethograms).details(), "ethograms": ethogram_details(ethograms)}


def section(page: str, anchor: str) -> str:
    return page[page.index(f'<section id="{anchor}">') :].split("</section>")[0]


def test_every_behaviour_has_its_scores_and_threshold(tmp_path: Path) -> None:
    part = section(page_with(tmp_path, details_of(ethogram())), "behaviours")
    rows = [re.sub(r"<[^>]*>", " ", row).split() for row in re.findall("<tr>(.*?)</tr>", part)]
    assert rows[2][:4] == ["walk", "30", "0.667", "0.667"]
    assert (rows[1][-1], rows[2][-1]) == ("–", "0.500")
    assert "rear&lt;b&gt; never occurred in the validation" in part


def test_truth_stands_above_prediction_on_one_axis(tmp_path: Path) -> None:
    part = section(page_with(tmp_path, details_of(ethogram())), "ethograms")
    truth = re.search(r'class="truth-strip" d="M(\d+) (\d+)h(\d+)', part)
    predicted = re.search(r'class="strip" d="M(\d+) (\d+)h(\d+)', part)
    assert truth is not None and predicted is not None
    assert (int(truth[1]), int(truth[3])) == (CELLS * 2 // 10, CELLS * 3 // 10)
    assert (int(predicted[1]), int(predicted[3])) == (CELLS * 3 // 10, CELLS * 3 // 10)
    assert int(truth[2]) < int(predicted[2])
    assert f'class="unlabelled" d="M{CELLS * 9 // 10} ' in part
    assert "walk: truth 3.0 s in 1 bout, predicted 3.0 s in 1 bout" in part
    assert "<title>background" not in part


def test_a_video_without_truth_shows_what_was_predicted(tmp_path: Path) -> None:
    part = section(page_with(tmp_path, {"ethograms": ethogram_details([ethogram(labelled=False)])}), "ethograms")
    assert 'class="strip"' in part
    assert "truth" not in part


def test_more_videos_are_folded_away_and_many_are_left_out(tmp_path: Path) -> None:
    many = [ethogram(f"mouse_{number}.mp4") for number in range(30)]
    part = section(page_with(tmp_path, details_of(*many)), "ethograms")
    assert part.index("mouse_3.mp4") < part.index("8 more videos") < part.index("mouse_4.mp4")
    assert "mouse_12.mp4" not in part


def test_confused_behaviours_are_counted(tmp_path: Path) -> None:
    part = section(page_with(tmp_path, details_of(ethogram())), "behaviours-confused")
    assert 'title="walk answered as background: 10 (33%)"' in part


def test_details_that_hold_something_else_make_a_page_all_the_same(tmp_path: Path) -> None:
    broken = {
        "behaviours": {"walk": {"f1": "good", "frames": None}, "rear": 3},
        "behaviour_confusion": {"behaviours": ["walk"], "counts": [[1, 2]]},
        "ethograms": [
            7,
            {"video": 3, "duration_s": "long", "predicted": {"walk": [[0, 1]]}},
            {"duration_s": 10, "predicted": {"walk": [[0], "x", [3, 1], [1, 2]]}, "truth": 5},
        ],
    }
    page = page_with(tmp_path, json.loads(json.dumps(broken)))
    assert "no table of behaviours that fits" in page
    assert section(page, "ethograms").count("<figure") == 1


def test_short_bouts_of_long_videos_are_seen_and_make_no_large_page() -> None:
    bouts = [(float(second), second + 0.1) for second in range(0, 36_000, 2)]
    picture = ethogram_picture("day.mp4", 36_000.0, [Lane("walk", bouts, bouts[:1])])
    assert picture is not None and len(picture) < 50_000
    assert 'class="truth-strip" d="M0 1h1v' in picture
    assert "600 min" in picture


@pytest.mark.parametrize(
    ("stretch", "expected"), [((0.0, 10.0), (0, CELLS)), ((9.999, 10.0), (CELLS - 1, CELLS)), ((0.0, 0.0), (0, 1))]
)
def test_cells_cover_a_stretch_and_never_less_than_one(stretch: tuple[float, float], expected: tuple[int, int]) -> None:
    runs = cells_of([stretch], 10.0)
    assert (runs.starts.tolist(), runs.stops.tolist()) == ([expected[0]], [expected[1]])


def test_videos_without_length_have_no_picture() -> None:
    assert ethogram_picture("m.mp4", 0.0, [Lane("walk", [])]) is None
    assert ethogram_picture("m.mp4", float("nan"), [Lane("walk", [])]) is None
