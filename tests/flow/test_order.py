"""The plain orders, against lists written out, and what every order obeys."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import OptionError
from penstock.flow.order.orders import Draws, Everything, Order, Picked, Repeated, Shuffled, Sliced, WindowShuffled
from penstock.flow.order.sampling import Mixed, Weighted

STARTS = np.array([0, 100, 250, 251, 251, 900])
ORDERS: dict[str, Order] = {
    "everything": Everything(1_200, member=3),
    "picked": Picked(Everything(1_200), np.arange(0, 1_200, 7, dtype=np.int32)),
    "shuffled": Shuffled(Everything(1_200), seed=7, step=0),
    "shuffled, few": Shuffled(Everything(12), seed=7, step=0),
    "sliced": Sliced(Shuffled(Everything(1_200), seed=7, step=0), 100, 900),
    "repeated": Repeated(Shuffled(Everything(400), seed=7, step=0), 3),
    "endless": Repeated(Shuffled(Everything(400), seed=7, step=0)),
    "windows": WindowShuffled(Everything(1_200), STARTS, 2, seed=7, step=0),
    "weighted": Weighted(Everything(1_200), np.arange(1_200), 2_000, seed=7, step=0),
    "mixed": Mixed((Shuffled(Everything(700), 7, 0), Shuffled(Everything(300, 1), 7, 0)), (0.7, 0.3), until="all"),
}


def drawn(order: Order, epoch: int = 0, length: int | None = None) -> Draws:
    """A whole epoch, or its first positions."""
    positions = np.arange(order.length if length is None else length)
    return order.draws(np.full_like(positions, epoch), positions)


def rows(draws: Draws) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in draws), strict=True))


@pytest.fixture(params=ORDERS)
def order(request: pytest.FixtureRequest) -> Order:
    return ORDERS[request.param]


def test_every_order_answers_in_the_same_words(order: Order) -> None:
    draws = drawn(order, length=50 if order.length is None else None)
    assert [column.dtype.name for column in draws] == ["int64", "int64", "uint64", "int64"]
    assert {len(column) for column in draws} == {50 if order.length is None else order.length}


def test_every_order_is_asked_for_nothing(order: Order) -> None:
    assert rows(drawn(order, length=0)) == []


def test_every_order_is_the_same_in_another_process(order: Order) -> None:
    copy = pickle.loads(pickle.dumps(order))
    assert copy.length == order.length
    length = min(170, order.length or 170)
    assert rows(drawn(copy, length=length)) == rows(drawn(order, length=length))


def test_every_order_gives_a_position_the_same_whoever_is_asked_for_beside_it(order: Order) -> None:
    positions = np.random.default_rng(1).integers(0, order.length or 5_000, 300)
    epochs = np.random.default_rng(2).integers(0, 1 if order.length is None else 3, 300)
    together = rows(order.draws(epochs, positions))
    assert together == [rows(order.draws(epochs[i : i + 1], positions[i : i + 1]))[0] for i in range(300)]


def test_every_order_tells_its_draws_apart_by_what_randomness_follows_from(order: Order) -> None:
    draws = drawn(order, length=1_000 if order.length is None else None)
    assert len(set(zip(draws.key.tolist(), draws.epoch.tolist(), strict=True))) == len(draws.key)


@pytest.mark.parametrize("name", ["everything", "shuffled", "windows"])
def test_an_epoch_visits_every_sample_once(name: str) -> None:
    for epoch in (0, 1, 7):
        draws = drawn(ORDERS[name], epoch)
        assert len(set(zip(draws.member.tolist(), draws.index.tolist(), strict=True))) == ORDERS[name].length
        assert set(draws.epoch.tolist()) == {epoch}


def test_everything_is_the_order_of_the_source() -> None:
    assert rows(drawn(Everything(3), 4)) == [(0, 0, 0, 4), (0, 1, 1, 4), (0, 2, 2, 4)]


def test_equal_samples_of_two_sources_differ_in_key() -> None:
    assert not set(drawn(Everything(500, 1)).key.tolist()) & set(drawn(Everything(500, 2)).key.tolist())


def test_picked_positions_come_as_picked() -> None:
    assert drawn(Picked(Everything(10), np.array([7, 2, 5]))).index.tolist() == [7, 2, 5]
    assert drawn(Picked(Picked(Everything(10), np.array([7, 2, 5])), np.array([2, 0]))).index.tolist() == [5, 7]


@pytest.mark.parametrize("length", [12, 1_200])
def test_each_epoch_seed_and_step_shuffles_anew(length: int) -> None:
    orders = [Shuffled(Everything(length), seed, step) for seed in (1, 2) for step in (0, 1)]
    seen = {tuple(drawn(order, epoch).index.tolist()) for order in orders for epoch in range(5)}
    assert len(seen) == 20


def test_shuffles_of_epochs_that_follow_one_another_have_nothing_in_common() -> None:
    epochs = np.stack([drawn(Shuffled(Everything(1_000), 7, 0), epoch).index for epoch in range(400)])
    agreeing = (epochs[1:] == epochs[:-1]).sum(axis=1)
    assert abs(agreeing.mean() - 1) < 4 / np.sqrt(len(agreeing))
    assert np.abs(np.corrcoef(epochs)[np.triu_indices(400, 1)]).mean() < 1 / np.sqrt(1_000)


def test_the_order_of_a_seed_never_changes() -> None:
    assert drawn(Shuffled(Everything(10), 7, 0)).index.tolist() == [2, 7, 3, 1, 6, 5, 8, 0, 4, 9]
    assert drawn(Shuffled(Everything(10**6), 7, 2), 3, length=4).index.tolist() == [977777, 535421, 705879, 822589]


@given(length=st.integers(0, 20), start=st.integers(0, 25), stop=st.none() | st.integers(0, 25))
def test_slices_are_those_of_lists(length: int, start: int, stop: int | None) -> None:
    order = Sliced(Shuffled(Everything(length), 1, 0), start, stop)
    expected = drawn(order.inner, 2).index.tolist()[start:stop]
    assert order.length == len(expected)
    assert drawn(order, 2).index.tolist() == expected


@given(length=st.integers(0, 8), times=st.integers(1, 4), epoch=st.integers(0, 5))
def test_a_repeated_order_is_its_next_epochs_in_a_row(length: int, times: int, epoch: int) -> None:
    inner = Shuffled(Everything(length), 1, 0)
    expected = [row for turn in range(times) for row in rows(drawn(inner, epoch * times + turn))]
    assert rows(drawn(Repeated(inner, times), epoch)) == expected


def test_an_endless_order_goes_through_all_epochs() -> None:
    inner = Shuffled(Everything(5), 1, 0)
    endless = Repeated(inner)
    assert endless.length is None
    assert Sliced(endless, 3).length is None
    assert rows(drawn(endless, length=20)) == [row for epoch in range(4) for row in rows(drawn(inner, epoch))]
    assert rows(drawn(Repeated(endless, 2), length=20)) == rows(drawn(endless, length=20))


def test_what_cannot_be_ordered_is_said() -> None:
    endless = Repeated(Everything(3))
    with pytest.raises(OptionError, match=r"shuffle\(\) needs a flow with an end. Call it before repeat\(\)"):
        Shuffled(endless, 1, 0)
    with pytest.raises(OptionError, match="times=0"):
        Repeated(Everything(3), 0)
    with pytest.raises(OptionError, match="no samples to repeat"):
        Repeated(Everything(0))


def test_a_billion_samples_cost_no_memory() -> None:
    positions = np.arange(5_000) + 123_456_789
    tracemalloc.start()
    try:
        shuffled = Shuffled(Everything(10**9), 7, 0)
        window = WindowShuffled(Everything(10**9), np.arange(0, 10**9, 10**6), 16, 7, 1)
        for order in (shuffled, window, Mixed((shuffled, Everything(10**9, 1)), (2, 1)), Repeated(shuffled)):
            order.draws(np.zeros(5_000, np.int64), positions)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
