"""Charts show what the numbers say, whatever the numbers are."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.reporting.charts import (
    UNITS,
    Chart,
    Series,
    Share,
    line_chart,
    position_axis,
    share_bar,
    slot_class,
    thinned,
    value_axis,
)

ANY_NUMBER = st.floats(allow_nan=True, allow_infinity=True)


def drawn(chart: str, look: str = "line s0 d0") -> str:
    found = re.search(rf'class="{look}" d="([^"]*)"', chart)
    assert found is not None
    return found.group(1)


def test_a_line_goes_through_its_points() -> None:
    chart = line_chart(Chart("Loss"), [Series("loss", ((1, 1.0), (2, 0.5), (3, 0.0)))])
    assert chart is not None
    assert drawn(chart) == "M0 0L500 500L1000 1000"
    assert drawn(chart, "dots s0 d0") == "M0 0h0M500 500h0M1000 1000h0"


def test_a_chart_says_in_words_what_it_shows() -> None:
    chart = line_chart(Chart("Loss", "step"), [Series("train <loss>", ((1, 1.0), (9, 0.5)))])
    assert 'aria-label="Loss by step: train &lt;loss&gt; from 1 to 0.5000"' in str(chart)
    assert "<title>step 9\ntrain &lt;loss&gt; 0.5000</title>" in str(chart)


def test_what_is_no_number_is_a_gap_and_is_said() -> None:
    points = ((1, 1.0), (2, math.nan), (3, 0.0), (4, math.inf))
    chart = line_chart(Chart("Loss"), [Series("loss", points)])
    assert chart is not None
    assert drawn(chart) == "M0 0M1000 1000"
    assert "loss was not a number at epoch 2 and 1 more." in chart


def test_nothing_to_draw_is_no_chart() -> None:
    assert line_chart(Chart("Loss"), []) is None
    assert line_chart(Chart("Loss"), [Series("loss", ((1, math.nan),))]) is None
    assert share_bar("Time", [Share("read", 0.0, 0)]) is None


def test_one_point_is_a_dot_in_the_middle() -> None:
    chart = line_chart(Chart("Loss"), [Series("loss", ((1, 0.7),))])
    assert chart is not None
    assert drawn(chart, "dots s0 d0").startswith("M500 ")


def test_losses_of_very_different_size_stand_on_a_logarithmic_axis() -> None:
    axis = value_axis([0.001, 1.0], may_be_log=True)
    assert axis.is_log and axis.ticks == (0.001, 0.01, 0.1, 1.0)
    assert axis.place(0.001) == 0 and axis.place(1.0) == 1 and axis.place(0.1) == pytest.approx(2 / 3)
    assert not value_axis([0.001, 1.0]).is_log
    assert not value_axis([0.5, 1.0], may_be_log=True).is_log
    assert not value_axis([0.0, 1.0], may_be_log=True).is_log


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.61, 0.97], (0.6, 0.7, 0.8, 0.9, 1.0)),
        ([0, 1], (0.0, 0.25, 0.5, 0.75, 1.0)),
        ([3, 12], (2.5, 5.0, 7.5, 10.0, 12.5)),
        ([0.2, 0.2], (0.18, 0.19, 0.2, 0.21, 0.22)),
    ],
)
def test_axes_have_round_numbers(values: list[float], ticks: tuple[float, ...]) -> None:
    assert value_axis(values).ticks == ticks


def test_scores_do_not_pass_their_limits() -> None:
    axis = value_axis([0.99, 1.0, 1.0], limits=(0.0, 1.0))
    assert axis.high == 1.0
    assert value_axis([1.0], limits=(0.0, 1.0)).high == 1.0


def test_epochs_are_counted_in_whole_numbers() -> None:
    assert position_axis(1, 8).ticks == (2.0, 4.0, 6.0, 8.0)
    assert position_axis(0, 15).ticks == (0.0, 5.0, 10.0, 15.0)
    assert position_axis(0.5, 3).ticks == (1.0, 2.0, 3.0)


@given(st.lists(ANY_NUMBER, max_size=30), st.booleans())
@example([5e-324, 1.0], True)
@example([0.0, 5e-324], False)
@example([-9e299, 9e299], False)
def test_every_number_stands_on_its_axis(values: list[float], may_be_log: bool) -> None:
    axis = value_axis(values, may_be_log=may_be_log)
    assert axis.low < axis.high and 2 <= len(axis.ticks) <= 12
    for value in values:
        if abs(value) < 1e300:
            assert -1e-6 <= axis.place(value) <= 1 + 1e-6


@given(st.lists(st.tuples(st.floats(0, 1e6), ANY_NUMBER), max_size=40))
@example([(0.0, 0.0), (5e-324, 0.0)])
def test_a_drawing_is_well_formed_and_inside_of_its_frame(points: list[tuple[float, float]]) -> None:
    chart = line_chart(Chart("Loss", may_be_log=True), [Series("loss", tuple(sorted(dict(points).items())))])
    if chart is None:
        return
    root = ElementTree.fromstring(chart)
    for path in root.iter("path"):
        numbers = [float(number) for number in re.findall(r"-?[\d.]+(?:e-?\d+)?", path.attrib["d"].replace("h0", ""))]
        assert all(-1 <= number <= UNITS + 1 for number in numbers)


def test_long_lines_are_thinned_and_keep_their_peaks_and_gaps() -> None:
    points = [(float(step), 1.0) for step in range(100_000)]
    points[70_001] = (70_001.0, 9.0)
    points[30_001] = (30_001.0, math.nan)
    kept = thinned(points)
    assert len(kept) <= 900
    assert points[70_001] in kept and points[0] in kept and points[-1] in kept
    assert any(math.isnan(value) for _, value in kept)
    assert thinned(points[:100]) == points[:100]


def test_the_first_lines_of_a_chart_all_look_different() -> None:
    assert len({slot_class(slot) for slot in range(24)}) == 24


def test_a_bar_is_cut_by_share() -> None:
    bar = str(share_bar("Time", [Share("read", 3.0, 0), Share("decode", 1.0, 1, "1 s"), Share("none", 0.0, 2)]))
    assert "width:75.00%" in bar and "width:25.00%" in bar and bar.count("width:") == 2
    assert 'aria-label="Time: read 75%, decode 25%, none 0%"' in bar
    assert 'title="decode: 25% 1 s"' in bar
