"""A page with who worked and who waited: a lane for each hop and for the model, over the seconds that were measured.

A bar is as high as the share of its lane's time that was worked (full colour) and waited (faint, on top of it). A lane
of a hop is full when all workers are at it; that of the model, when it never waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.diagnosis.diagnosis import Diagnosis
from penstock.diagnosis.runs import Moment
from penstock.errors import OptionError
from penstock.flow.measuring.metrics import HOPS
from penstock.reporting.charts import position_axis
from penstock.reporting.page import Markup, Part, note, page, table, tag
from penstock.storage.whole_files import write_whole

SUFFIXES = (".html", ".htm")
MOST_BARS = 160
LEFT, WIDTH, LANE, GAP = 130, 860, 60, 14
TICKS_HEIGHT = 24
MODEL = "model"


@dataclass(frozen=True)
class Bar:
    """Some moments of one lane: shares of its time."""

    start_seconds: float
    seconds: float
    worked: float
    waited: float


def checked_page(path: str | Path) -> Path:
    """The page to write, or an error before anything is measured."""
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES or target.is_dir():
        raise OptionError(f"timeline={str(path)!r} must be a page to write, such as timeline.html.")
    return target


def write_timeline(found: Diagnosis, path: str | Path) -> Path:
    """Write the page, and give its path."""
    target = checked_page(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, timeline_page(found))
    return target


def timeline_page(found: Diagnosis) -> str:
    """The page as text."""
    remedies = [
        [f"{number}. {one.what}", f"× {one.speed_up:.1f}", tag("td", tag("code", one.how), class_="words")]
        for number, one in enumerate(found.remedies, start=1)
    ]
    parts = [
        Part("Verdict", tag("p", f"{found.verdict.sentence[0].upper()}{found.verdict.sentence[1:]}.", class_="lead")),
        Part("Who worked and who waited", _picture(found)),
        Part("Hops", tag("pre", found.table)),
    ]
    if remedies:
        parts.append(Part("Remedies", table(("remedy", "predicted", "how"), remedies, label="Remedies")))
    return page(found.name, "doctor", parts)


def _picture(found: Diagnosis) -> Markup:
    groups, workers = grouped(found.timeline), max(found.workers, 1)
    lanes = [*HOPS, *([MODEL] if found.training_rate is not None else [])]
    end = max((group[-1].start_seconds + _seconds([group[-1]]) for group in groups), default=1.0)
    first = groups[0][0].start_seconds if groups else 0.0
    scale = WIDTH / max(end - first, 1e-9)
    drawn = [
        _lane(number, [lane_bar(name, group, workers) for group in groups], first, scale)
        for number, name in enumerate(lanes)
    ]
    names = [_name(number, name, lane_bar(name, found.timeline, workers)) for number, name in enumerate(lanes)]
    height = len(lanes) * (LANE + GAP)
    label = f"{', '.join(lanes)} over {end - first:.1f} seconds"
    box = f"0 0 {LEFT + WIDTH + 10} {height + TICKS_HEIGHT}"
    ticks = _ticks(end - first, scale, height)
    return tag("figure", _legend(), tag("svg", drawn, ticks, names, viewBox=box, role="img", aria_label=label))


def _legend() -> Markup:
    """In the colour of the first lane; each has its own."""
    marks = [
        tag("li", tag("i"), "working", style="--c:var(--s0)"),
        tag("li", tag("i"), "waiting, with a sample or for a batch", class_="faint", style="--c:var(--s0)"),
    ]
    remark = (
        "A full lane is all workers at that hop; for deliver, the thread that takes batches; a model without a pause."
    )
    return tag("div", tag("ul", marks, class_="legend blocks"), note(remark))


def _ticks(seconds: float, scale: float, height: float) -> list[Markup]:
    """Seconds below the lanes, with a line through them."""
    drawn = []
    for tick in position_axis(0.0, seconds).ticks:
        x = LEFT + tick * scale
        line = tag("line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1="0", y2=f"{height - GAP}", style="stroke:var(--edge)")
        drawn += [line, _text(x, height + 8, f"{tick:g} s", anchor="middle" if tick else "start")]
    return drawn


def grouped(moments: Sequence[Moment]) -> list[list[Moment]]:
    """Moments that follow one another, put together into as many groups as can be seen."""
    size = max(-(-len(moments) // MOST_BARS), 1)
    return [list(moments[start : start + size]) for start in range(0, len(moments), size)]


def lane_bar(name: str, group: Sequence[Moment], workers: int) -> Bar:
    """What a lane did in some moments."""
    seconds = max(_seconds(group), 1e-9)
    if name == MODEL:
        used = sum(moment.used_seconds for moment in group) / seconds
        return Bar(group[0].start_seconds, seconds, used, 1 - used)
    lanes = 1 if name == "deliver" else workers
    worked = min(sum(moment.costs.hops[name].cpu_seconds for moment in group) / seconds / lanes, 1.0)
    waited = sum(moment.costs.hops[name].wait_seconds for moment in group) / seconds / lanes
    return Bar(group[0].start_seconds, seconds, worked, min(waited, 1 - worked))


def _seconds(group: Sequence[Moment]) -> float:
    return sum(moment.waited_seconds + moment.used_seconds for moment in group)


def _name(number: int, name: str, whole: Bar) -> Markup:
    """What a lane is called, and what it did on the whole."""
    top = number * (LANE + GAP)
    shares = f"{whole.worked:.0%} works", f"{whole.waited:.0%} waits"
    below = [_text(0, top + 37 + 16 * line, words, size=12, ink="dim") for line, words in enumerate(shares)]
    return tag("g", _text(0, top + 19, name), below)


def _lane(number: int, bars: Sequence[Bar], first: float, scale: float) -> Markup:
    bottom = number * (LANE + GAP) + LANE
    ground = _rectangle(LEFT, bottom - LANE, WIDTH, LANE, "fill:var(--raised)")
    drawn = [ground]
    for bar in bars:
        left, width = LEFT + (bar.start_seconds - first) * scale, bar.seconds * scale
        worked, waited = LANE * bar.worked, LANE * bar.waited
        colour = f"fill:var(--s{number})"
        drawn.append(_rectangle(left, bottom - worked, width, worked, colour))
        drawn.append(_rectangle(left, bottom - worked - waited, width, waited, f"{colour};opacity:.3"))
    return tag("g", drawn)


def _rectangle(x: float, y: float, width: float, height: float, style: str) -> Markup:
    return tag("rect", x=f"{x:.1f}", y=f"{y:.1f}", width=f"{width:.2f}", height=f"{height:.1f}", style=style)


def _text(x: float, y: float, words: str, *, size: int = 14, ink: str = "ink", anchor: str = "start") -> Markup:
    style = f"fill:var(--{ink});font-size:{size}px;text-anchor:{anchor}"
    return tag("text", words, x=f"{x:.0f}", y=f"{y:.0f}", style=style)
