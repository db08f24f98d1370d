"""Global batches dealt to ranks: everything once, the same number of steps, shares as even as they go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import OptionError
from penstock.flow.order.batches import Deal

LENGTHS, BATCHES, RANKS = st.integers(0, 200), st.integers(1, 40), st.integers(1, 9)


def ranks(
    length: int | None, batch_size: int, world_size: int, *, drop_last: bool = False, keep_all: bool = False
) -> list[Deal]:
    return [Deal(length, batch_size, drop_last, rank, world_size, keep_all) for rank in range(world_size)]


def dealt(deals: list[Deal]) -> list[list[int]]:
    """The positions of each global batch, rank after rank."""
    steps = deals[0].count
    assert steps is not None and {deal.count for deal in deals} == {steps}
    return [[p for deal in deals for p in range(*deal.span(number))] for number in range(steps)]


@given(length=LENGTHS, batch_size=BATCHES, world_size=RANKS, drop_last=st.booleans())
def test_training_deals_every_position_once_or_counts_it(
    length: int, batch_size: int, world_size: int, drop_last: bool
) -> None:
    deals = ranks(length, max(batch_size, world_size), world_size, drop_last=drop_last)
    left_out = deals[0].left_out
    positions = [position for batch in dealt(deals) for position in batch]
    assert positions == list(range(length - left_out))
    assert left_out < (deals[0].batch_size if drop_last else world_size)


@given(length=LENGTHS, batch_size=BATCHES, world_size=RANKS)
def test_evaluation_leaves_nothing_out(length: int, batch_size: int, world_size: int) -> None:
    deals = ranks(length, batch_size, world_size, keep_all=True)
    assert [position for batch in dealt(deals) for position in batch] == list(range(length))
    assert deals[0].left_out == 0


@given(length=LENGTHS, batch_size=BATCHES, world_size=RANKS)
def test_a_global_batch_does_not_depend_on_how_many_ranks_share_it(
    length: int, batch_size: int, world_size: int
) -> None:
    alone = dealt(ranks(length, batch_size, 1, keep_all=True))
    assert dealt(ranks(length, batch_size, world_size, keep_all=True)) == alone
    assert all(len(batch) == batch_size for batch in alone[:-1])


@given(length=LENGTHS, batch_size=BATCHES, world_size=RANKS)
def test_shares_differ_by_one_at_most_and_none_is_empty_in_training(
    length: int, batch_size: int, world_size: int
) -> None:
    deals = ranks(length, max(batch_size, world_size), world_size)
    for number in range(deals[0].count or 0):
        sizes = [stop - start for start, stop in (deal.span(number) for deal in deals)]
        assert max(sizes) - min(sizes) <= 1
        assert min(sizes) >= 1


def test_a_short_last_batch_is_dealt_dropped_or_left_out() -> None:
    assert [deal.span(2) for deal in ranks(21, 8, 2)] == [(16, 18), (18, 21)]
    assert (Deal(21, 8, drop_last=True).count, Deal(21, 8, drop_last=True).left_out) == (2, 5)
    few = Deal(17, 8, world_size=2)
    assert (few.count, few.left_out) == (2, 1)
    assert [deal.span(2) for deal in ranks(17, 8, 2, keep_all=True)] == [(16, 16), (16, 17)]


def test_without_an_end_every_batch_is_full() -> None:
    deals = ranks(None, 10, 3)
    assert deals[0].count is None and deals[0].left_out == 0
    assert [deal.span(10**9) for deal in deals] == [
        (10**10, 10**10 + 3),
        (10**10 + 3, 10**10 + 6),
        (10**10 + 6, 10**10 + 10),
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 0}, r"batch\(0\): expected 1 sample or more"),
        ({"rank": 2, "world_size": 2}, "expected 0 <= rank < world_size"),
        ({"rank": -1}, "rank=-1"),
        ({"world_size": 0}, "world_size=0"),
        ({"batch_size": 3, "world_size": 4}, "too small for 4 ranks"),
        ({"drop_last": True, "keep_all": True}, "drop_last=True leaves samples out"),
    ],
)
def test_what_cannot_be_dealt_is_said(options: dict[str, int], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        Deal(**{"length": 10, "batch_size": 5, **options})  # type: ignore[arg-type]
