"""Line charts and bars as SVG and HTML that any width stretches without changing its letters.

The plot is an SVG of 1000 × 1000 units that fills its box; strokes keep their width, and the words beside the axes are
HTML placed by percentages. Colours are classes s0 … s7 of the page, which has a light and a dark set of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from penstock.reporting.page import Child, Markup, joined, note, shortened, tag
from penstock.reporting.wording import percent, shown

# From values to places on an axis: where it begins and ends, and which values are written beside it.


# Values that span more than this factor are drawn on a logarithmic axis, where all are above zero.
LOG_FACTOR = 50.0
LARGEST = 1e300  # beyond this, differences are no numbers any more
SMALLEST = 1e-300  # below this, parts of a length are nothing
HALVES = (1.0, 2.0, 2.5, 5.0, 10.0)
WHOLES = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high` as parts of a length from 0 to 1."""

    low: float
    high: float
    ticks: tuple[float, ...]
    is_log: bool = False

    def place(self, value: float) -> float:
        """Where a value stands, from 0 to 1."""
        if self.is_log:
            return (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return (value - self.low) / (self.high - self.low)


def value_axis(values: Iterable[float], *, may_be_log: bool = False, limits: tuple[float, float] | None = None) -> Axis:
    """An axis on which all values stand, with round values at its ends; `limits` are never passed."""
    finite = [value for value in values if abs(value) < LARGEST] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if may_be_log and low > SMALLEST and high / low > LOG_FACTOR:
        return _log_axis(low, high)
    low, high = _apart(low, high)
    step = round_step((high - low) / 4)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    if limits is not None:
        low, high = max(low, limits[0]), min(high, limits[1])
    return Axis(low, high, _steps(low, high, step))


def position_axis(low: float, high: float) -> Axis:
    """An axis for epochs, steps or seconds: it ends where they end, and whole numbers are written."""
    if _is_same(low, high):
        return Axis(low - 0.5, low + 0.5, (low,))
    step = max(round_step((high - low) / 6, WHOLES), 1.0 if high - low >= 2 else 0.0)
    return Axis(low, high, _steps(math.ceil(low / step - 1e-9) * step, high, step))


def _apart(low: float, high: float) -> tuple[float, float]:
    """A little room where all values are the same."""
    if not _is_same(low, high):
        return low, high
    room = abs(low) * 0.1 if abs(low) > SMALLEST else 0.5
    return low - room, high + room


def _is_same(low: float, high: float) -> bool:
    return high - low <= max(abs(low), abs(high)) * 1e-9 + SMALLEST


def _log_axis(low: float, high: float) -> Axis:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = -(-(last - first) // 6)
    return Axis(10.0**first, 10.0**last, tuple(10.0**power for power in range(first, last + 1, every)), is_log=True)


def round_step(length: float, factors: tuple[float, ...] = HALVES) -> float:
    """The next round number: one of these factors times a power of ten."""
    power = 10.0 ** math.floor(math.log10(length))
    return next(factor * power for factor in factors if factor * power >= length * (1 - 1e-9))


def _steps(low: float, high: float, step: float) -> tuple[float, ...]:
    count = math.floor((high - low) / step + 1e-6)
    # Through a text, so that 0.30000000000000004 is 0.3.
    return tuple(float(f"{low + number * step:.10g}") for number in range(count + 1))


COLOURS = 8
DASHES = 3
UNITS = 1000
MOST_POINTS = 400  # of a line; more are not seen on a screen, and make the page large
MOST_DOTS = 60  # with more, dots would hide the line
MOST_SPOTS = 120  # places that answer to the pointer


@dataclass(frozen=True)
class Series:
    """A line of a chart: points (position, value) in order, where nan leaves a gap."""

    name: str
    points: tuple[tuple[float, float], ...]
    slot: int = 0  # chooses colour and dashes
    is_faint: bool = False

    @property
    def drawn(self) -> list[tuple[float, float]]:
        return [point for point in self.points if abs(point[1]) < LARGEST]

    @property
    def look(self) -> str:
        return slot_class(self.slot) + (" faint" if self.is_faint else "")


@dataclass(frozen=True)
class Chart:
    """What a line chart says beside its lines."""

    title: str
    unit: str = "epoch"  # of the positions
    may_be_log: bool = False
    limits: tuple[float, float] | None = None
    from_zero: bool = False
    mark: tuple[float, str] | None = None  # a position, and what is there
    remark: str = ""


def slot_class(slot: int) -> str:
    """The classes that give a line its colour and its dashes; no two of the first 24 are the same."""
    return f"s{slot % COLOURS} d{slot // COLOURS % DASHES}"


def line_chart(chart: Chart, series: Sequence[Series]) -> Markup | None:
    """A chart of lines, or None where no line has a point."""
    lines = [one for one in series if one.drawn]
    if not lines:
        return None
    positions = [position for one in lines for position, _ in one.drawn]
    across = position_axis(min(positions), max(positions))
    values = [value for one in lines for _, value in one.drawn] + [0.0] * chart.from_zero
    up = value_axis(values, may_be_log=chart.may_be_log, limits=chart.limits)
    kind = tag("span", "logarithmic", class_="kind") if up.is_log else None
    gaps = _gaps_text(series, chart.unit)
    return tag(
        "figure",
        tag("figcaption", tag("b", chart.title), kind, _legend(chart, lines)),
        _plot(chart, lines, across, up),
        note(chart.remark) if chart.remark else None,
        note(gaps) if gaps else None,
        class_="chart",
    )


def _legend(chart: Chart, lines: Sequence[Series]) -> Markup | None:
    """What each line is; a single one is what the title says."""
    if len(lines) == 1 and chart.title.lower() == lines[0].name.lower():
        return None
    items = [tag("li", tag("i"), shortened(one.name, 60), class_=one.look) for one in lines]
    mark = None if chart.mark is None else tag("li", tag("i"), chart.mark[1], class_="best-mark")
    return tag("ul", items, mark, class_="legend")


def _plot(chart: Chart, lines: Sequence[Series], across: Axis, up: Axis) -> Markup:
    ys = [tag("span", _tick(value), style=f"bottom:{100 * up.place(value):.4g}%") for value in up.ticks]
    xs = [tag("span", _tick(value), style=f"left:{100 * across.place(value):.4g}%") for value in across.ticks]
    drawing = tag(
        "svg",
        tag("path", class_="rule", d="".join(f"M0 {_y(up, value)}H{UNITS}" for value in up.ticks)),
        _mark(chart, across),
        [_line(one, across, up) for one in reversed(lines)],  # the first line is the one that matters
        _spots(chart, lines, across),
        viewBox=f"0 0 {UNITS} {UNITS}",
        preserveAspectRatio="none",
        role="img",
        aria_label=_summary(chart, lines),
    )
    names = tag("div", xs, class_="xs", aria_hidden="true"), tag("div", f"{chart.unit}s", class_="unit")
    return tag("div", tag("div", ys, class_="ys", aria_hidden="true"), drawing, names, class_="plot")


def _tick(value: float) -> str:
    if value and not 1e-3 <= abs(value) < 1e5:
        digits, power = f"{value:.2e}".split("e")
        return f"{digits.rstrip('0').rstrip('.')}e{int(power)}"
    return f"{value:,.10g}"


def _x(axis: Axis, position: float) -> str:
    return f"{UNITS * axis.place(position):.1f}".removesuffix(".0")


def _y(axis: Axis, value: float) -> str:
    return f"{UNITS * (1 - axis.place(value)):.1f}".removesuffix(".0")


def _line(one: Series, across: Axis, up: Axis) -> Markup:
    path, pen_is_down = [], False
    for position, value in thinned(one.points):
        is_drawn = abs(value) < LARGEST
        if is_drawn:
            path.append(f"{'L' if pen_is_down else 'M'}{_x(across, position)} {_y(up, value)}")
        pen_is_down = is_drawn
    line = tag("path", class_=f"line {one.look}", d="".join(path))
    if one.is_faint or len(path) > MOST_DOTS:
        return line
    # A line of no length with round ends is a dot that no stretching makes an ellipse.
    dots = "".join(f"M{_x(across, position)} {_y(up, value)}h0" for position, value in one.drawn)
    return joined([line, tag("path", class_=f"dots {one.look}", d=dots)])


def thinned(points: Sequence[tuple[float, float]], most: int = MOST_POINTS) -> list[tuple[float, float]]:
    """Fewer points that look the same: the lowest and the highest of each stretch, and what is no number."""
    if len(points) <= most:
        return list(points)
    stretches = most // 2
    kept: set[int] = {0, len(points) - 1}
    for stretch in range(stretches):
        numbers = range(stretch * len(points) // stretches, (stretch + 1) * len(points) // stretches)
        finite = [number for number in numbers if math.isfinite(points[number][1])]
        if len(finite) < len(numbers):
            kept.add(next(number for number in numbers if number not in finite))
        if finite:
            kept |= {min(finite, key=lambda at: points[at][1]), max(finite, key=lambda at: points[at][1])}
    return [points[number] for number in sorted(kept)]


def _mark(chart: Chart, across: Axis) -> Markup | None:
    if chart.mark is None or not across.low <= chart.mark[0] <= across.high:
        return None
    x = _x(across, chart.mark[0])
    return tag("path", tag("title", chart.mark[1]), class_="mark", d=f"M{x} 0V{UNITS}")


def _spots(chart: Chart, lines: Sequence[Series], across: Axis) -> Markup:
    """Strips over the plot that tell all values at a position."""
    told = [one for one in lines if not one.is_faint] or list(lines)
    positions = sorted({position for one in told for position, _ in one.drawn})
    every = -(-len(positions) // MOST_SPOTS)
    kept = positions[::every]
    places = [UNITS * across.place(position) for position in kept]
    edges = [0.0, *((left + right) / 2 for left, right in pairwise(places)), float(UNITS)]
    values = [dict(one.drawn) for one in told]
    strips = []
    for position, left, right in zip(kept, edges[:-1], edges[1:], strict=True):
        here = [f"{one.name} {shown(at[position])}" for one, at in zip(told, values, strict=True) if position in at]
        text = "\n".join([f"{chart.unit} {shown(position)}", *here])
        strips.append(tag("g", tag("title", text), _strip(left, right), class_="spot"))
    return joined(strips)


def _strip(left: float, right: float) -> Markup:
    return tag("rect", x=f"{left:.1f}", y="0", width=f"{right - left:.1f}", height=UNITS)


def _summary(chart: Chart, lines: Sequence[Series]) -> str:
    """The chart in words, for those who do not see it."""
    ends = [f"{one.name} from {shown(one.drawn[0][1])} to {shown(one.drawn[-1][1])}" for one in lines]
    return f"{chart.title} by {chart.unit}: {'; '.join(ends[:COLOURS])}"


def _gaps_text(series: Sequence[Series], unit: str) -> str:
    """Where values were no numbers."""
    found = []
    for one in series:
        gaps = [position for position, value in one.points if not abs(value) < LARGEST]
        if gaps:
            more = f" and {len(gaps) - 1:,} more" if len(gaps) > 1 else ""
            found.append(f"{one.name} was not a number at {unit} {shown(gaps[0])}{more}.")
    return " ".join(found)


@dataclass(frozen=True)
class Share:
    """A part of a bar."""

    name: str
    size: float
    slot: int
    text: str = ""


def share_bar(title: str, shares: Sequence[Share]) -> Markup | None:
    """One bar cut into parts, with a legend below it; None where there is nothing to share."""
    total = sum(share.size for share in shares)
    if not total > 0:
        return None
    parts = [
        tag(
            "span",
            tag("em", percent(share.size / total)) if share.size / total >= 0.08 else None,
            class_=slot_class(share.slot),
            style=f"width:{100 * share.size / total:.2f}%",
            title=f"{share.name}: {percent(share.size / total)} {share.text}".rstrip(),
        )
        for share in shares
        if share.size > 0
    ]
    label = f"{title}: " + ", ".join(f"{share.name} {percent(share.size / total)}" for share in shares)
    legend: list[Child] = [
        tag("li", tag("i"), share.name, " ", tag("small", percent(share.size / total)), class_=slot_class(share.slot))
        for share in shares
    ]
    return tag(
        "figure",
        tag("figcaption", tag("b", title)),
        tag("div", parts, class_="bar", role="img", aria_label=label),
        tag("ul", legend, class_="legend blocks"),
        class_="shares",
    )
