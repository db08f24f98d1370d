"""Who worked and who waited, as bars."""

from __future__ import annotations

import pytest

from penstock.diagnosis.runs import Moment
from penstock.flow.measuring.hops import HOPS
from penstock.reporting.timelines import MOST_BARS, grouped, lane_bar


def moment(start: float = 0.0) -> Moment:
    """A second: half of it waited for; two workers decoded all of it, of which one waited for half of that."""
    return Moment(
        start, 0.5, 0.5, 8, dict.fromkeys(HOPS, 0.0) | {"decode": 1.5}, dict.fromkeys(HOPS, 0.0) | {"decode": 0.5}
    )


def test_a_lane_is_full_when_all_workers_are_at_it() -> None:
    found = lane_bar("decode", [moment()], workers=2)
    assert (found.worked, found.waited) == (0.75, 0.25)


def test_the_model_works_or_waits() -> None:
    found = lane_bar("model", [moment(), moment(1.0)], workers=2)
    assert (found.worked, found.waited, found.seconds) == (0.5, 0.5, 2.0)


def test_a_lane_never_overflows() -> None:
    found = lane_bar("decode", [moment()], workers=1)
    assert found.worked + found.waited == pytest.approx(1.0)


@pytest.mark.parametrize("count", [1, MOST_BARS, MOST_BARS + 1, 5 * MOST_BARS])
def test_many_moments_are_put_together_and_none_is_lost(count: int) -> None:
    groups = grouped([moment(float(number)) for number in range(count)])
    assert len(groups) <= MOST_BARS and sum(map(len, groups)) == count
