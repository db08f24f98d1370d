"""Matching finds the assignment of largest shared area."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.geometry.overlaps import BoxSet
from penstock.results.box_matching import assign, match, overlaps_of


@st.composite
def weights(draw: st.DrawFn) -> np.ndarray:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    values = rng.random(shape) * 100 * (rng.random(shape) < draw(st.sampled_from([0.3, 0.7, 1.0])))
    return np.round(values / 30) if draw(st.booleans()) else values


def best_sum(values: np.ndarray) -> float:
    """By trying every assignment."""
    if values.shape[0] > values.shape[1]:
        values = values.T
    rows = np.arange(len(values))
    return max(
        values[rows, list(columns)].sum() for columns in itertools.permutations(range(values.shape[1]), len(rows))
    )


@given(weights())
@settings(max_examples=200, deadline=None)
def test_no_assignment_weighs_more(values: np.ndarray) -> None:
    rows, columns = np.nonzero(values)
    chosen = assign(rows, columns, values[rows, columns], *values.shape)
    assert len(set(rows[chosen])) == len(set(columns[chosen])) == len(chosen)
    assert np.isclose(values[rows[chosen], columns[chosen]].sum(), best_sum(values))


def test_a_greedy_choice_is_undone_where_that_pays() -> None:
    """The largest overlap of all is given up: the two others together are larger."""
    values = np.array([[10.0, 9.0], [9.0, 0.0]])
    rows, columns = np.nonzero(values)
    chosen = assign(rows, columns, values[rows, columns], 2, 2)
    assert sorted(zip(rows[chosen].tolist(), columns[chosen].tolist(), strict=True)) == [(0, 1), (1, 0)]


def test_boxes_of_different_images_never_match() -> None:
    box = np.array([[0.0, 0, 10, 10]])
    same = overlaps_of(BoxSet(box, np.array([1])), BoxSet(box, np.array([1])))
    other = overlaps_of(BoxSet(box, np.array([1])), BoxSet(box, np.array([2])))
    assert match(same, iou=0.4).tolist() == [0] and match(other, iou=0.4).tolist() == [-1]


def test_a_match_needs_more_than_the_limit() -> None:
    truth, prediction = np.array([[0.0, 0, 10, 10]]), np.array([[0.0, 0, 10, 5]])
    overlaps = overlaps_of(BoxSet(prediction), BoxSet(truth))
    assert match(overlaps, iou=0.5).tolist() == [-1] and match(overlaps, iou=0.49).tolist() == [0]
