"""Who worked and who waited, as bars."""

from __future__ import annotations

from dataclasses import replace

import pytest

import penstock as ps
from ailing_sources import Quick, flow_of
from penstock.diagnosis.diagnosis import Diagnosis
from penstock.diagnosis.runs import Moment
from penstock.flow.measuring.metrics import HOPS, Costs, HopCost
from penstock.reporting.timelines import MOST_BARS, grouped, lane_bar, timeline_page


@pytest.fixture(scope="module")
def quick_look() -> Diagnosis:
    return ps.doctor(flow_of(Quick()), seconds=1)


def moment(start: float = 0.0) -> Moment:
    """A second: half of it waited for; two workers decoded all of it, of which one waited for half of that."""
    costs = Costs()
    costs.hops["decode"].add(HopCost(8, 1.5, 0.5))
    return Moment(start, 0.5, 0.5, 8, costs)


def test_a_lane_is_full_when_all_workers_are_at_it() -> None:
    found = lane_bar("decode", [moment()], workers=2)
    assert (found.worked, found.waited) == (0.75, 0.25)


def test_the_model_works_or_waits() -> None:
    found = lane_bar("model", [moment(), moment(1.0)], workers=2)
    assert (found.worked, found.waited, found.seconds) == (0.5, 0.5, 2.0)


def test_lanes_are_named_with_their_shares_and_seconds_stand_below(quick_look: Diagnosis) -> None:
    page = timeline_page(replace(quick_look, timeline=tuple(moment(float(start)) for start in range(10)), workers=2))
    assert all(f">{hop}</text>" in page for hop in HOPS) and ">model</text>" not in page
    assert "75% works" in page and "25% waits" in page
    assert ">0 s</text>" in page and ">10 s</text>" in page
    assert "working" in page and "waiting" in page


def test_a_lane_never_overflows() -> None:
    found = lane_bar("decode", [moment()], workers=1)
    assert found.worked + found.waited == pytest.approx(1.0)


@pytest.mark.parametrize("count", [1, MOST_BARS, MOST_BARS + 1, 5 * MOST_BARS])
def test_many_moments_are_put_together_and_none_is_lost(count: int) -> None:
    groups = grouped([moment(float(number)) for number in range(count)])
    assert len(groups) <= MOST_BARS and sum(map(len, groups)) == count
