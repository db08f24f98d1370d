"""The shuffle in windows of blocks: as exact as the other, and no sample leaves the blocks of its window."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.flow.order.orders import Everything, Repeated, WindowShuffled, mixing_quality, window_limits


def made(lengths: list[int], window: int, seed: int = 7) -> WindowShuffled:
    starts = np.concatenate([[0], np.cumsum(lengths)])[:-1].astype(np.int64)
    return WindowShuffled(Everything(sum(lengths)), starts, window, seed, 0)


def epoch_of(order: WindowShuffled, epoch: int) -> NDArray[np.int64]:
    return order.draws(np.full(order.length, epoch), np.arange(order.length)).index


def blocks_of(order: WindowShuffled, indices: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.searchsorted(order.block_starts, indices, side="right") - 1


@given(
    lengths=st.lists(st.integers(0, 40), max_size=12),
    window=st.integers(1, 15),
    epoch=st.integers(0, 3),
    seed=st.integers(0, 2**63),
)
def test_every_sample_comes_once_whatever_the_blocks(lengths: list[int], window: int, epoch: int, seed: int) -> None:
    order = made(lengths, window, seed)
    assert np.array_equal(np.sort(epoch_of(order, epoch)), np.arange(sum(lengths)))


def test_large_blocks_come_once_too() -> None:
    order = made([3_000, 1, 0, 5_000, 2_500, 1_700], 2)
    assert np.array_equal(np.sort(epoch_of(order, 5)), np.arange(order.length))


@pytest.mark.parametrize(("count", "window"), [(8, 3), (9, 3), (100, 16), (5, 9)])
def test_only_the_blocks_of_one_window_are_needed_at_a_time(count: int, window: int) -> None:
    order = made([50] * count, window)
    limits = window_limits(count, window)
    assert np.diff(limits).max() <= window
    for start, stop in pairwise(limits.tolist()):
        seen = blocks_of(order, epoch_of(order, 1)[start * 50 : stop * 50])
        assert len(set(seen.tolist())) == stop - start


def test_no_window_is_much_smaller_than_another() -> None:
    assert np.diff(window_limits(9, 8)).tolist() == [4, 5]
    assert window_limits(0, 8).tolist() == [0]


def test_samples_of_a_window_are_thoroughly_mixed() -> None:
    order = made([100] * 100, 10)
    seen = blocks_of(order, epoch_of(order, 0))[:1_000]
    changes = np.count_nonzero(np.diff(seen)) / 999
    assert abs(changes - 0.9) < 0.04


def test_each_epoch_has_other_windows_and_other_orders_within() -> None:
    order = made([20] * 40, 4)
    epochs = [epoch_of(order, epoch) for epoch in range(10)]
    first_windows = {frozenset(blocks_of(order, epoch[:80]).tolist()) for epoch in epochs}
    assert len(first_windows) > 8
    assert len({tuple(made([500], 1).draws(np.full(500, e), np.arange(500)).index) for e in range(10)}) == 10


def test_a_block_opens_the_epoch_as_often_as_any_other() -> None:
    order = made([1] * 20, 1)
    firsts = [int(order.draws(np.array([epoch]), np.array([0])).index[0]) for epoch in range(2_000)]
    counts = np.bincount(firsts, minlength=20)
    assert ((counts - 100) ** 2 / 100).sum() < 19 + 4 * np.sqrt(2 * 19)


def test_windows_of_one_epoch_are_shuffled_in_different_ways() -> None:
    order = made([500] * 4, 1)
    windows = epoch_of(order, 0).reshape(4, 500) % 500
    assert len({tuple(window) for window in windows.tolist()}) == 4


def test_the_order_of_a_seed_never_changes() -> None:
    assert epoch_of(made([3, 4, 2, 5], 2), 1).tolist() == [7, 8, 13, 9, 12, 10, 11, 0, 1, 6, 5, 2, 4, 3]


def test_the_mixing_is_the_share_of_the_data_in_one_window() -> None:
    assert mixing_quality(np.array([10] * 100), 100) == pytest.approx(1)
    assert mixing_quality(np.array([10] * 100), 10) == pytest.approx(0.1)
    assert mixing_quality(np.array([10] * 100), 1) == pytest.approx(0.01)
    assert mixing_quality(np.array([10]), 1) == 1
    assert mixing_quality(np.array([], np.int64), 1) == 1


def test_the_mixing_is_what_epochs_show_on_average() -> None:
    order = made([5, 80, 10, 40, 1, 30], 2)
    shares = []
    for epoch in range(1_500):
        sizes = _window_sizes(order, epoch)
        shares.append((sizes**2).sum() / order.length**2)
    assert np.mean(shares) == pytest.approx(order.mixing, rel=0.02)


def _window_sizes(order: WindowShuffled, epoch: int) -> NDArray[np.int64]:
    """How many samples each window of two blocks has, from the blocks in order of their first appearance."""
    lengths = np.diff(order.block_starts, append=order.length)
    seen = list(dict.fromkeys(blocks_of(order, epoch_of(order, epoch)).tolist()))
    return lengths[np.array(seen)].reshape(-1, 2).sum(axis=1)


def test_what_cannot_be_shuffled_in_windows_is_said() -> None:
    with pytest.raises(OptionError, match="window=0"):
        made([3, 3], 0)
    with pytest.raises(OptionError, match="needs a flow with an end"):
        WindowShuffled(Repeated(Everything(3)), np.array([0]), 1, 7, 0)
