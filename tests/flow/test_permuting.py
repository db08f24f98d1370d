"""The shuffle without a list: a bijection that looks random, and stays the same for ever."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from penstock.flow.order.orders import permuted

LENGTHS = (999, 1_000, 1_001, 4_096, 10_000)
KEYS = st.integers(0, 2**64 - 1)


def whole(length: int, key: int) -> NDArray[np.int64]:
    return permuted(np.arange(length), length, key)


def shuffles(length: int, first_key: int = 0) -> NDArray[np.int64]:
    """Shuffles of half a million numbers together, one per row, with keys that follow one another."""
    return np.stack([whole(length, key) for key in range(first_key, first_key + 500_000 // length)])


def surprise(counts: NDArray[np.int64], expected: NDArray[np.float64] | float, degrees: int) -> float:
    """How many standard deviations chi-square is from what chance gives."""
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return abs(statistic - degrees) / sqrt(2 * degrees)


def table(rows: NDArray[np.int64], columns: NDArray[np.int64], length: int, bins: int = 20) -> NDArray[np.int64]:
    cells = (rows * bins // length) * bins + columns * bins // length
    return np.bincount(cells.ravel(), minlength=bins * bins)


def from_margins(counts: NDArray[np.int64], bins: int = 20) -> NDArray[np.float64]:
    square = counts.reshape(bins, bins)
    return np.outer(square.sum(axis=1), square.sum(axis=0)).ravel() / counts.sum()


@given(length=st.integers(0, 6_000), key=KEYS)
def test_every_number_is_met_once(length: int, key: int) -> None:
    assert np.array_equal(np.sort(whole(length, key)), np.arange(length))


@pytest.mark.parametrize("side", [32, 33, 100, 1_000])
@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_every_number_is_met_once_around_squares(side: int, beside: int) -> None:
    length = side * side + beside
    assert np.array_equal(np.sort(whole(length, 5)), np.arange(length))


@given(length=st.integers(2, 2**62), key=KEYS, data=st.data())
def test_no_two_of_a_huge_range_meet(length: int, key: int, data: st.DataObject) -> None:
    asked = data.draw(st.lists(st.integers(0, length - 1), min_size=1, max_size=50, unique=True))
    moved = permuted(np.array(asked), length, key)
    assert len(set(moved.tolist())) == len(asked)
    assert moved.min() >= 0 and moved.max() < length


@given(length=st.integers(1, 50_000), key=KEYS, data=st.data())
def test_a_position_goes_where_it_goes_whoever_is_asked_for_beside_it(
    length: int, key: int, data: st.DataObject
) -> None:
    asked = np.array(data.draw(st.lists(st.integers(0, length - 1), max_size=20)), np.int64)
    assert np.array_equal(permuted(asked, length, key), whole(length, key)[asked])


def test_shuffles_never_change() -> None:
    first = np.arange(5)
    assert permuted(first, 10, 7).tolist() == [8, 5, 3, 2, 9]
    assert permuted(first, 999, 7).tolist() == [330, 753, 524, 320, 981]
    assert permuted(first, 1_000, 7).tolist() == [542, 136, 837, 502, 367]
    assert permuted(first, 1_000_003, 2**64 - 1).tolist() == [206928, 501931, 799610, 545239, 98291]
    assert permuted(first + 2**40, 2**62, 7).tolist() == [
        4410614795651529863,
        145767820338142426,
        359837550313391419,
        2063413756523675702,
        2990960333147874630,
    ]


@pytest.mark.parametrize("length", LENGTHS)
def test_every_position_goes_everywhere_equally_often(length: int) -> None:
    rows = shuffles(length)
    counts = table(np.broadcast_to(np.arange(length), rows.shape), rows, length)
    assert surprise(counts, from_margins(counts), 19 * 19) < 4


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("apart", [1, 2, 32, 100])
def test_neighbours_land_anywhere_beside_each_other(length: int, apart: int) -> None:
    rows = shuffles(length)
    counts = table(rows[:, :-apart], rows[:, apart:], length)
    assert surprise(counts, from_margins(counts), 19 * 19) < 4
    steps = np.bincount(((rows[:, apart:] - rows[:, :-apart]) % length).ravel(), minlength=length)[1:]
    assert surprise(steps, steps.mean(), length - 2) < 4


@pytest.mark.parametrize("length", LENGTHS)
def test_as_many_numbers_stay_where_they_are_as_chance_lets_stay(length: int) -> None:
    rows = np.concatenate([shuffles(length), shuffles(length, 2**63)])
    staying = (rows == np.arange(length)).sum(axis=1)
    assert abs(staying.mean() - 1) < 4 / sqrt(len(rows))


@pytest.mark.parametrize("length", LENGTHS)
def test_shuffles_of_keys_that_follow_one_another_have_nothing_in_common(length: int) -> None:
    rows = shuffles(length)
    counts = table(rows[:-1], rows[1:], length)
    assert surprise(counts, from_margins(counts), 19 * 19) < 4
    agreeing = (rows[:-1] == rows[1:]).sum(axis=1)
    assert abs(agreeing.mean() - 1) < 4 / sqrt(len(agreeing))


def test_a_billion_is_spread_evenly_by_its_first_thousands() -> None:
    moved = permuted(np.arange(100_000), 10**9, 3)
    counts = np.bincount(moved * 100 // 10**9, minlength=100)
    assert surprise(counts, 1_000.0, 99) < 4
