"""Hints for options that other programs call otherwise."""

from __future__ import annotations

import pytest

from commands import run_here


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["check", "rasters", "a.tif", "--patch-size", "400"], "--tile-px"),
        (["predict", "run", "a.tif", "--patch_overlap", "0.1"], "--overlap"),
        (["predict", "run", "a.tif", "--score-thresh", "0.1"], "--score-threshold"),
        (["evaluate", "a.csv", "--iou-threshold", "0.4"], "--iou"),
        (["check", "boxes", "a.csv", "--clas", "x"], "--classes"),
    ],
)
def test_an_option_of_deepforest_is_told_what_it_is_here(arguments: list[str], hint: str) -> None:
    answer = run_here(*arguments)
    assert answer.exit_code == 2 and f"Did you mean {hint}?" in answer.err.replace("'", "")
