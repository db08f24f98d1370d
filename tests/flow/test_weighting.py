"""Weighted draws: in proportion, and each one a draw of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import OptionError
from penstock.flow.order.orders import Draws, Everything, Picked, Repeated
from penstock.flow.order.sampling import Weighted, balanced_weights


def drawn(order: Weighted, epoch: int = 0) -> Draws:
    return order.draws(np.full(order.length, epoch), np.arange(order.length))


def test_samples_come_in_proportion_to_their_weights() -> None:
    weights = np.array([0, 1, 2, 0, 3, 4, 0])
    counts = np.bincount(drawn(Weighted(Everything(7), weights, 100_000, 7, 0)).index, minlength=7)
    expected = weights[weights > 0] * 10_000
    assert counts[weights == 0].tolist() == [0, 0, 0]
    assert ((counts[weights > 0] - expected) ** 2 / expected).sum() < 3 + 4 * np.sqrt(6)


@given(weights=st.lists(st.floats(0, 1e308), min_size=1, max_size=30).filter(any), seed=st.integers(0, 99))
def test_a_weight_of_nothing_is_never_drawn(weights: list[float], seed: int) -> None:
    index = drawn(Weighted(Everything(len(weights)), weights, 200, seed, 0)).index
    assert (np.array(weights)[index] > 0).all()


def test_the_smallest_and_the_largest_number_draw_the_first_and_the_last_that_has_a_weight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    edges = np.array([[0.0], [0.5], [1 - 2.0**-53]])
    monkeypatch.setattr("penstock.flow.order.sampling.sample_uniforms", lambda *_: edges)
    assert drawn(Weighted(Everything(6), [0, 3, 0, 2, 1, 0], 3, 7, 0)).index.tolist() == [1, 3, 4]
    assert drawn(Weighted(Everything(2), [5e-324, 0], 3, 7, 0)).index.tolist() == [0, 0, 0]


def test_a_sample_that_comes_twice_is_two_draws() -> None:
    draws = drawn(Weighted(Everything(3), [1, 1, 1], 5_000, 7, 0))
    assert len(set(draws.key.tolist())) == 5_000


def test_draws_of_two_sources_have_different_keys() -> None:
    keys = [drawn(Weighted(Everything(1, member), [1], 500, 7, 0)).key.tolist() for member in (0, 1)]
    assert not set(keys[0]) & set(keys[1])


def test_each_epoch_seed_and_step_draws_anew() -> None:
    orders = [Weighted(Everything(100), np.ones(100), 50, seed, step) for seed in (1, 2) for step in (0, 1)]
    assert len({tuple(drawn(order, epoch).index) for order in orders for epoch in range(5)}) == 20


def test_weights_belong_to_the_positions_of_what_is_sampled() -> None:
    order = Weighted(Picked(Everything(10), np.array([7, 2, 5])), [0, 1, 0], 20, 7, 0)
    assert set(drawn(order).index.tolist()) == {2}


def test_the_draws_of_a_seed_never_change() -> None:
    draws = drawn(Weighted(Everything(5), [1, 2, 3, 4, 5], 6, 7, 0), 2)
    assert draws.index.tolist() == [4, 4, 2, 4, 0, 1]
    assert draws.key[:2].tolist() == [2171726524959355661, 16065523922850094435]


def test_balanced_weights_make_every_class_equally_likely() -> None:
    labels = np.array([0] * 90 + [1] * 9 + [-1] * 50 + [7])
    weights = balanced_weights(labels)
    assert [weights[labels == label].sum() for label in (0, 1, 7)] == pytest.approx([1, 1, 1])
    assert (weights[labels == -1] == 0).all()


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1, -1, 2], "1 of 3 weights are not finite numbers of 0 or more; the first is weight 1: -1.0"),
        ([1, float("nan"), float("inf")], "2 of 3 weights"),
        ([0, 0, 0], "all weights are 0"),
        ([1, 2], r"expected 3 weights, one for each sample, got shape \(2,\)"),
        ([[1, 2, 3]], r"got shape \(1, 3\)"),
        (["many", "few", "none"], "not numbers"),
    ],
)
def test_weights_that_cannot_be_drawn_from_are_said(weights: Any, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        Weighted(Everything(3), weights, 5, 7, 0)


def test_what_cannot_be_sampled_is_said() -> None:
    with pytest.raises(OptionError, match="count=-1"):
        Weighted(Everything(3), [1, 1, 1], -1, 7, 0)
    with pytest.raises(OptionError, match=r"sample\(\) needs a flow with an end"):
        Weighted(Repeated(Everything(3)), [1, 1, 1], 5, 7, 0)
    with pytest.raises(OptionError, match="no sample has one"):
        balanced_weights(np.array([-1, -1]))
    with pytest.raises(OptionError, match="one class number for each sample, got float64"):
        balanced_weights(np.array([0.5, 1.0]))
    with pytest.raises(OptionError, match=r"shape \(2, 2\)"):
        balanced_weights(np.zeros((2, 2), np.int64))
