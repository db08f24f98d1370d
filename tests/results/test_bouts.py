"""Bouts: found, filled, dropped, and shown as a table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.results.bouts import (
    background_of,
    bouts_table,
    fill_emptied,
    painted,
    runs_of,
    shortest_bouts,
    stop_times,
    without_short_bouts,
    without_short_runs,
)

vectors = st.lists(st.integers(0, 1), max_size=60).map(lambda values: np.array(values, np.int8))


def smoothed(text: str, shortest: int) -> str:
    binary = np.array([int(letter) for letter in text])[:, None]
    return "".join(map(str, without_short_bouts(binary, [shortest])[:, 0]))


def by_hand(text: str, shortest: int) -> str:
    """The rule as its sentence says it, on text."""
    import re

    for length in range(1, shortest):
        text = re.sub(f"(?<=1)0{{{length}}}(?=1)", "1" * length, text)
        text = re.sub(f"(?<=0)1{{{length}}}(?=0)", "0" * length, text)
    return text


@given(vectors)
def test_runs_paint_the_vector_they_came_from(vector: np.ndarray) -> None:
    runs = runs_of(vector)
    assert (runs.lengths > 0).all()
    assert np.array_equal(painted(runs, len(vector)), vector)


@given(st.text("01", max_size=60), st.integers(1, 8))
def test_the_rule_is_kept_to_the_letter(text: str, shortest: int) -> None:
    assert smoothed(text, shortest) == by_hand(text, shortest)


@given(vectors, st.integers(1, 8))
def test_no_bout_stays_that_is_seen_whole_and_too_short(vector: np.ndarray, shortest: int) -> None:
    kept = without_short_runs(runs_of(vector), shortest, len(vector))
    whole = (kept.starts > 0) & (kept.stops < len(vector))
    assert (kept.lengths[whole] >= shortest).all()
    assert (kept.starts[1:] - kept.stops[:-1] >= shortest).all()


@pytest.mark.parametrize(
    ("before", "shortest", "after"),
    [
        ("0110110", 1, "0110110"),
        ("0110110", 2, "0111110"),
        ("0100100100", 3, "0000000000"),  # stray frames vanish before they could join
        ("0011110", 5, "0000000"),
        ("0001111", 5, "0001111"),  # cut off by the end: nobody knows how long it is
        ("1000111", 9, "1111111"),
        ("1111", 99, "1111"),
        ("", 3, ""),
    ],
)
def test_gaps_are_filled_before_bouts_are_dropped(before: str, shortest: int, after: str) -> None:
    assert smoothed(before, shortest) == after


def test_every_behaviour_has_its_own_shortest_bout() -> None:
    binary = np.array([[0, 0], [1, 1], [0, 0], [0, 0], [1, 1], [1, 1]])
    assert without_short_bouts(binary, [2, 1]).tolist() == [[0, 0], [0, 1], [0, 0], [0, 0], [1, 1], [1, 1]]


def test_background_is_none_of_the_others() -> None:
    assert background_of(np.array([[0, 0], [1, 0], [1, 1]])).tolist() == [1, 0, 0]


def test_bouts_that_are_cut_do_not_decide_what_is_short() -> None:
    labels = np.array([1, 0, 1, 1, 1, 0, 1, -1, 0, 1, 1, 1, 1, 0, 0, 1], np.int8)[:, None]
    assert shortest_bouts([labels]).tolist() == [3]
    assert shortest_bouts([np.ones((5, 1), np.int8)]).tolist() == [1]  # none was seen whole, so nothing is known
    assert shortest_bouts([np.array([-1, 1, 1, -1], np.int8)[:, None]]).tolist() == [1]
    assert shortest_bouts([np.zeros((5, 2), np.int8)]).tolist() == [1, 1]


def test_bouts_of_two_videos_are_not_joined_for_the_shortest() -> None:
    video = np.array([0, 1, 1, 0], np.int8)[:, None]
    assert shortest_bouts([video, video]).tolist() == [2]


def test_the_table_has_exclusive_stops_and_no_background() -> None:
    binary = np.array([[0, 1, 0], [0, 1, 1], [1, 0, 0], [0, 0, 1]])
    table = bouts_table(binary, ("background", "groom", "rear"), np.array([0.0, 0.1, 0.2, 0.4]), "m.mp4")
    assert table.drop(columns="video").to_numpy().tolist() == [
        ["groom", 0, 2, 0.0, 0.2, 0.2],
        ["rear", 1, 2, 0.1, 0.2, 0.1],
        ["rear", 3, 4, 0.4, 0.5, pytest.approx(0.1)],
    ]
    assert set(table["video"]) == {"m.mp4"}


def test_a_table_without_bouts_has_all_columns() -> None:
    table = bouts_table(np.zeros((3, 1)), ("rear",), np.arange(3.0))
    assert len(table) == 0
    assert list(table.columns) == ["video", "behaviour", "start_frame", "stop_frame", "start_s", "stop_s", "duration_s"]
    assert len(bouts_table(np.zeros((0, 1)), ("rear",), np.zeros(0))) == 0


def test_the_last_frame_lasts_as_long_as_frames_usually_do() -> None:
    assert stop_times(np.array([0.0, 0.5, 1.0, 3.0])).tolist() == [0.5, 1.0, 3.0, 3.5]
    assert stop_times(np.array([2.0])).tolist() == [2.0]


def test_frames_that_lost_their_behaviour_get_the_more_likely_of_the_two_beside_them() -> None:
    present = np.array([[1, 0], [0, 0], [0, 0], [0, 1], [0, 0]])
    emptied = ~present.any(axis=1)
    for likely, expected in (([0.9, 0.1], [0, 0, 0, 1, 1]), ([0.1, 0.9], [0, 1, 1, 1, 1])):
        filled = fill_emptied(present, emptied, np.tile(likely, (5, 1)))
        assert filled.argmax(axis=1).tolist() == expected and (filled.sum(axis=1) == 1).all()


def test_frames_without_any_behaviour_beside_them_stay_empty() -> None:
    present = np.zeros((3, 2), np.int8)
    assert not fill_emptied(present, np.ones(3, bool), np.full((3, 2), 0.4)).any()
