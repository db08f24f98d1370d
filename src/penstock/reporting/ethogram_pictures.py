"""Ethograms as pictures: for each behaviour a lane over time, its truth in the upper half and its prediction below.

As charts do, the lanes are an SVG that fills its box, with words beside it in HTML. Time is cut into as many cells as a
screen can show, and a cell is filled where the behaviour is in any part of it: so nothing short disappears, and a video
of ten hours makes no larger page than one of a minute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.reporting.charts import position_axis, slot_class
from penstock.reporting.page import Markup, note, shortened, tag
from penstock.reporting.wording import duration
from penstock.results.bouts import Runs, runs_of

Stretches = Sequence[tuple[float, float]]  # seconds, in order

CELLS = 1200
LANE_UNITS, STRIP_UNITS, GAP_UNITS = 24, 9, 1
LANE_REM = 1.7


@dataclass(frozen=True)
class Lane:
    """One behaviour of a video; `truth` is None where it is not known."""

    name: str
    predicted: Stretches
    truth: Stretches | None = None
    unlabelled: Stretches = ()

    @property
    def words(self) -> str:
        told = "" if self.truth is None else f"truth {_told(self.truth)}, "
        return f"{self.name}: {told}predicted {_told(self.predicted)}"


def ethogram_picture(video: str, duration_s: float, lanes: Sequence[Lane], *, remark: str = "") -> Markup | None:
    """The picture of one video, or None where it has no length or no lanes."""
    if not lanes or not 0 < duration_s < float("inf"):
        return None
    names = [_name(lane, at, len(lanes)) for at, lane in enumerate(lanes)]
    height = f"height:{LANE_REM * len(lanes):.2f}rem"
    drawing = tag(
        "svg",
        [_lane(lane, at, duration_s) for at, lane in enumerate(lanes)],
        viewBox=f"0 0 {CELLS} {LANE_UNITS * len(lanes)}",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"Ethogram of {video}. " + "; ".join(lane.words for lane in lanes),
    )
    return tag(
        "figure",
        tag("figcaption", tag("b", shortened(video, 80)), tag("span", duration(duration_s), class_="kind")),
        tag("div", names, class_="lanes", style=height, aria_hidden="true"),
        tag("div", drawing, style=height),
        tag("div", _times(duration_s), class_="xs", aria_hidden="true"),
        note(remark) if remark else None,
        class_="ethogram",
    )


def _name(lane: Lane, at: int, count: int) -> Markup:
    return tag("span", shortened(lane.name, 24), style=f"top:{100 * (at + 0.5) / count:.3f}%")


def _lane(lane: Lane, at: int, duration_s: float) -> Markup:
    """The ground of the lane, what has no label, truth above and prediction below."""
    top = at * LANE_UNITS + GAP_UNITS
    lower = top + STRIP_UNITS + GAP_UNITS
    whole = STRIP_UNITS * 2 + GAP_UNITS
    upper = None if lane.truth is None else _strip(lane.truth, duration_s, top, STRIP_UNITS, "truth-strip")
    below = (top, whole) if lane.truth is None else (lower, STRIP_UNITS)
    return tag(
        "g",
        tag("title", lane.words),
        tag("path", class_="lane", d=f"M0 {top}h{CELLS}v{whole}h-{CELLS}z"),
        _strip(lane.unlabelled, duration_s, top, STRIP_UNITS, "unlabelled"),
        upper,
        _strip(lane.predicted, duration_s, *below, "strip"),
        class_=f"spot {slot_class(at)}",
    )


def _strip(stretches: Stretches, duration_s: float, top: int, height: int, look: str) -> Markup | None:
    runs = cells_of(stretches, duration_s)
    if not len(runs.starts):
        return None
    boxes = zip(runs.starts.tolist(), runs.lengths.tolist(), strict=True)
    path = "".join(f"M{start} {top}h{length}v{height}h-{length}z" for start, length in boxes)
    return tag("path", class_=look, d=path)


def cells_of(stretches: Stretches, duration_s: float) -> Runs:
    """The cells that these stretches touch, joined where they follow one another."""
    cells = np.zeros(CELLS, bool)
    if len(stretches):
        limits = np.clip(np.array(stretches, np.float64) / duration_s * CELLS, 0, CELLS)
        # Times are kept to the millisecond, so a stretch may reach a hair into the next cell.
        starts = np.minimum(np.floor(limits[:, 0] + 1e-3), CELLS - 1).astype(np.int64)
        stops = np.maximum(np.ceil(limits[:, 1] - 1e-3).astype(np.int64), starts + 1)
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            cells[start:stop] = True
    return runs_of(cells)


def _times(duration_s: float) -> list[Markup]:
    axis = position_axis(0.0, duration_s)
    if duration_s >= 300:
        minutes = position_axis(0.0, duration_s / 60)
        marks = [(minutes.place(value), f"{value:,.10g} min") for value in minutes.ticks]
    else:
        marks = [(axis.place(value), f"{value:,.10g} s") for value in axis.ticks]
    return [tag("span", text, style=f"left:{100 * place:.4g}%") for place, text in marks]


def _told(stretches: Stretches) -> str:
    seconds = sum(stop - start for start, stop in stretches)
    return f"{duration(seconds)} in {len(stretches):,} bout{'' if len(stretches) == 1 else 's'}"


def lanes_of(
    predicted: Mapping[str, Stretches],
    truth: Mapping[str, Stretches] | None,
    unlabelled: Mapping[str, Stretches],
) -> list[Lane]:
    """A lane for each behaviour that was predicted."""
    return [
        Lane(name, stretches, None if truth is None else truth.get(name, ()), unlabelled.get(name, ()))
        for name, stretches in predicted.items()
    ]
