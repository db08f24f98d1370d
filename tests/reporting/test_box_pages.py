"""A page on predicted boxes, with and without truth, and with images that are not there."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import penstock as ps
from commands import run_here
from penstock.errors import OptionError
from picture_making import write_picture

HEADER = "image_path,xmin,ymin,xmax,ymax,label,score\n"


@pytest.fixture
def found(tmp_path: Path) -> Path:
    for name in "ab":
        write_picture(tmp_path / f"images/{name}.png", width=100, height=80)
    path = tmp_path / "found.csv"
    path.write_text(HEADER + "a.png,0,0,10,10,Tree,0.9\na.png,50,50,60,60,<b>Bird,0.3\nb.png,1,0,10,10,Tree,0.8\n")
    return path


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    path = tmp_path / "truth.csv"
    path.write_text("image_path,xmin,ymin,xmax,ymax,label\na.png,0,0,10,10,Tree\nb.png,40,40,60,60,Tree\n")
    return path


def headings(page: Path) -> list[str]:
    return re.findall(r"<h2>([^<]*)</h2>", page.read_text(encoding="utf-8"))


def test_with_truth_the_page_has_scores_and_the_worst_image_first(found: Path, truth: Path) -> None:
    page = ps.report(found, truth=truth, images=found.parent / "images")
    assert page == found.with_suffix(".html")
    assert headings(page) == ["Scores", "Boxes", "Classes", "Found as", "Images"]
    text = page.read_text(encoding="utf-8")
    captions = re.findall(r'alt="(\w\.png: [^"]*)"', text)
    assert captions == ["b.png: 1 predicted, 1 true", "a.png: 2 predicted, 1 true"]
    assert "<b>Bird" not in text and "&lt;b&gt;Bird" in text


def test_without_truth_the_page_shows_what_was_found(found: Path) -> None:
    page = ps.report(pd.read_csv(found), found.parent / "page.html", images=found.parent / "images", min_score=0.5)
    assert headings(page) == ["Boxes", "Classes", "Images"]
    assert re.findall(r'alt="(\w\.png: [^"]*)"', page.read_text(encoding="utf-8")) == [
        "a.png: 1 predicted",
        "b.png: 1 predicted",
    ]


def test_images_that_are_not_there_are_said(found: Path) -> None:
    (found.parent / "images/b.png").unlink()
    text = ps.report(found, images=found.parent / "images").read_text(encoding="utf-8")
    assert "1 image not found or not readable" in text and 'alt="a.png' in text


def test_nothing_found_has_a_page_too(found: Path, truth: Path) -> None:
    found.write_text(HEADER)
    page = ps.report(found, truth=truth, images=found.parent / "images")
    assert "0 predicted, 1 true" in page.read_text(encoding="utf-8")
    assert "Boxes" in headings(ps.report(found))


def test_the_command_writes_the_page(found: Path, truth: Path) -> None:
    page = found.parent / "page.html"
    done = run_here("report", found, "--truth", truth, "--images", found.parent / "images", "-o", page)
    assert done.exit_code == 0 and headings(page)[0] == "Scores"


def test_options_of_boxes_are_refused_for_a_run(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="belong to a page on predicted boxes"):
        ps.report(tmp_path / "run", min_score=0.5)
