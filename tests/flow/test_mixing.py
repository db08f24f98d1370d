"""Mixing on a fixed schedule, against a loop that walks through it."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import OptionError
from penstock.flow.order.orders import Draws, Everything, Repeated, Shuffled
from penstock.flow.order.sampling import Mixed, counts, integer_weights, occurrence, scheduled

SHARES = st.lists(st.integers(1, 50), min_size=1, max_size=6)
Until = Literal["first", "all"]


def members(lengths: list[int]) -> tuple[Shuffled, ...]:
    return tuple(Shuffled(Everything(length, member), 7, 0) for member, length in enumerate(lengths))


def drawn(order: Mixed, epoch: int = 0, length: int | None = None) -> Draws:
    positions = np.arange(order.length if length is None else length)
    return order.draws(np.full_like(positions, epoch), positions)


def rows(draws: Draws) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in draws), strict=True))


def walked(shares: list[int], length: int) -> list[int]:
    """Which member stands at each position, one position after the other, by the definition."""
    found = []
    for position in range(length):
        member, left = 0, sum(shares)
        while (position + 1) * shares[member] // left == position * shares[member] // left:
            position -= position * shares[member] // left
            left -= shares[member]
            member += 1
        found.append(member)
    return found


def reference(lengths: list[int], shares: list[int], until: Until, epoch: int) -> list[tuple[int, ...]]:
    """An epoch of a mix as a plain loop over its positions, with the number of passes from a first walk through it."""
    schedule, found = walked(shares, 20_000), []
    for member in schedule:
        full = {number for number, length in enumerate(lengths) if found.count(number) >= length}
        if (member in full) if until == "first" else len(full) == len(lengths):
            break
        found.append(member)
    passes = [max(1, -(-found.count(number) // length)) for number, length in enumerate(lengths)]
    taken, expected = [0] * len(lengths), []
    for member in found:
        turn, inside = divmod(taken[member], lengths[member])
        order = members(lengths)[member]
        expected += rows(order.draws(np.array([epoch * passes[member] + turn]), np.array([inside])))
        taken[member] += 1
    return expected


@given(shares=SHARES, length=st.integers(0, 300))
def test_the_schedule_is_as_defined(shares: list[int], length: int) -> None:
    expected = walked(shares, length)
    found = np.full(length, -1)
    for member, (places, local) in enumerate(scheduled(shares, np.arange(length))):
        found[places] = member
        assert local.tolist() == list(range(len(places)))
        assert [occurrence(shares, member, number) for number in range(len(places))] == places.tolist()
    assert found.tolist() == expected
    assert counts(shares, length) == [expected.count(member) for member in range(len(shares))]


@given(shares=SHARES)
def test_every_member_gets_exactly_its_share_of_each_round(shares: list[int]) -> None:
    assert counts(shares, sum(shares) * 3) == [share * 3 for share in shares]


@given(shares=SHARES, length=st.integers(1, 5_000))
def test_no_member_is_ever_far_from_its_share(shares: list[int], length: int) -> None:
    for count, share in zip(counts(shares, length), shares, strict=True):
        assert abs(count - length * share / sum(shares)) <= len(shares)


def test_the_schedule_is_exact_far_out() -> None:
    shares = (2**30 - 7, 5, 2**30 - 1)
    start = 2**55
    before = counts(shares, start)
    for member, (_, local) in enumerate(scheduled(shares, np.arange(start, start + 1_000))):
        assert local.tolist() == list(range(before[member], before[member] + len(local)))
    assert occurrence(shares, 2, before[2]) >= start


@given(
    members_=st.lists(st.tuples(st.integers(1, 12), st.integers(1, 9)), min_size=1, max_size=4),
    until=st.sampled_from(["first", "all"]),
    epoch=st.integers(0, 3),
)
def test_a_mix_is_what_a_plain_loop_gives(members_: list[tuple[int, int]], until: Until, epoch: int) -> None:
    lengths, shares = [length for length, _ in members_], [share for _, share in members_]
    order = Mixed(members(lengths), shares, until)
    expected = reference(lengths, list(order.shares), until, epoch)
    assert order.length == len(expected)
    assert rows(drawn(order, epoch)) == expected


def test_until_first_visits_nothing_twice_and_ends_with_the_first() -> None:
    order = Mixed(members([30, 100]), (1, 1), "first")
    draws = drawn(order)
    assert len(set(zip(draws.member.tolist(), draws.index.tolist(), strict=True))) == order.length
    assert np.count_nonzero(draws.member == 0) == 30


def test_until_all_starts_the_shorter_ones_again_and_every_pass_differs() -> None:
    order = Mixed(members([40, 5]), (1, 1), "all")
    short = [drawn(order, epoch) for epoch in range(3)]
    passes = [tuple(draws.index[draws.member == 1][i : i + 5].tolist()) for draws in short for i in range(0, 40, 5)]
    assert all(sorted(one) == list(range(5)) for one in passes)
    assert len({epoch for draws in short for epoch in draws.epoch[draws.member == 1].tolist()}) == 24
    assert sorted(short[0].index[short[0].member == 0].tolist()) == list(range(40))


def test_lengths_as_weights_visit_everything_exactly_once() -> None:
    for until in ("first", "all"):
        assert Mixed(members([7_001, 12_345, 3]), (7_001, 12_345, 3), until).length == 7_001 + 12_345 + 3


def test_members_without_end_go_on_and_never_end_a_mix() -> None:
    endless = Repeated(Shuffled(Everything(7), 7, 0))
    order = Mixed((endless, Everything(10, 1)), (1, 1))
    epochs = [drawn(order, epoch) for epoch in range(3)]
    seen = [index for draws in epochs for index in draws.index[draws.member == 0].tolist()]
    assert seen == endless.draws(np.zeros(len(seen), np.int64), np.arange(len(seen))).index.tolist()
    assert all(sorted(draws.index[draws.member == 1].tolist()) == list(range(10)) for draws in epochs)
    assert Mixed((endless, endless), (1, 1)).length is None
    assert Mixed((endless, endless), (1, 1), "all").length is None
    assert np.bincount(drawn(Mixed((endless, Repeated(Everything(5, 1))), (3, 1)), length=100).member).tolist() == [
        75,
        25,
    ]


def test_mixes_may_be_mixed() -> None:
    inner = Mixed((Everything(10), Everything(10, 1)), (1, 1))
    order = Mixed((inner, Everything(20, 2)), (1, 1))
    assert np.bincount(drawn(order).member).tolist() == [10, 10, 20]


def test_the_length_of_a_mix_of_billions_is_known_at_once() -> None:
    order = Mixed(tuple(Everything(10**9 + member, member) for member in range(5)), (0.5, 0.2, 0.1, 0.1, 0.1))
    assert order.length is not None and abs(order.length - 2 * 10**9) < 10


def test_a_member_of_weight_0_is_left_out() -> None:
    order = Mixed(members([5, 5, 5]), (1, 0, 1))
    assert set(drawn(order).member.tolist()) == {0, 2}
    assert Mixed((Everything(5), Everything(0, 1)), (1, 0), "all").length == 5


def test_weights_mean_what_is_written() -> None:
    assert integer_weights([0.7, 0.2, 0.1], 3) == (7, 2, 1)
    assert integer_weights([2, 4, 0], 3) == (1, 2, 0)
    assert integer_weights(np.array([0.25, 0.75]), 2) == (1, 3)
    assert integer_weights([1e-12, 1.0], 2)[0] == 1
    thirds = integer_weights([1 / 3, 2 / 3], 2)
    assert thirds[1] / thirds[0] == pytest.approx(2, rel=1e-8)


@pytest.mark.parametrize(
    ("lengths", "weights", "words"),
    [
        ([5, 5], [1], "expected 2 weights, one for each flow, got 1"),
        ([5, 5], [1, -1], "got -1"),
        ([5, 5], [1, float("nan")], "got nan"),
        ([5, 5], [0, 0], "all weights are 0"),
        ([5, 0], [1, 1], "flow 1 has no samples"),
        ([], [], "expected one flow or more"),
    ],
)
def test_what_cannot_be_mixed_is_said(lengths: list[int], weights: list[float], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        Mixed(members(lengths), weights)


def test_an_unknown_end_is_said() -> None:
    with pytest.raises(OptionError, match="until='longest' is not one of first, all"):
        Mixed(members([5, 5]), (1, 1), "longest")  # type: ignore[arg-type]
