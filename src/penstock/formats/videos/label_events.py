"""Tables of events: video, start, stop, behaviour, in frames or seconds; or video, behaviour, for whole videos.

The unit is in the name of the columns (start_frame, stop_frame; start_s, stop_s, as BORIS writes "Start (s)") or is
given; plain `start` and `stop` with fractions are seconds, with whole numbers they are refused, not guessed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, Problem
from penstock.formats.tables import Numbers, Table, plain, wrong_columns
from penstock.formats.videos.frame_labels import Event, overlaps

VIDEO_NAMES = ("video", "videoname", "videofile", "mediafilepath", "mediafilename", "mediafile", "file", "filename")
BEHAVIOUR_NAMES = ("behaviour", "behavior", "label", "class")
SUBJECT_NAMES = ("subject", "animal", "individual")
_START_NAMES = ("start", "onset", "begin")
_STOP_NAMES = ("stop", "end", "offset")
_FRAME_NAMES = ("frame", "frames", "framenumber", "frameindex")
_SUFFIXES = {"": "", "frame": "frames", "frames": "frames", "s": "seconds", "seconds": "seconds", "sec": "seconds"}


class LabelEvents(NamedTuple):
    """Events as read, their unit, and what was wrong."""

    table: Table
    events: tuple[Event, ...]
    seconds: bool
    problems: list[Problem]
    names_videos: bool


def find_column(table: Table, names: tuple[str, ...]) -> str | None:
    """The first column whose plain name is one of these."""
    by_name = {plain(column): column for column in table.columns}
    return next((by_name[name] for name in names if name in by_name), None)


def _timed_column(table: Table, names: tuple[str, ...]) -> tuple[str, str] | None:
    for suffix, unit in _SUFFIXES.items():
        column = find_column(table, tuple(name + suffix for name in names))
        if column is not None:
            return column, unit
    return None


def event_columns(table: Table) -> list[str | None]:
    """The columns that are read of a table of events."""
    timed = [_timed_column(table, names) for names in (_START_NAMES, _STOP_NAMES)]
    named = [find_column(table, names) for names in (VIDEO_NAMES, BEHAVIOUR_NAMES, SUBJECT_NAMES)]
    return [*named, *(column[0] for column in timed if column is not None)]


def holds_events(table: Table) -> bool:
    """Whether a table has the columns of events."""
    return find_column(table, BEHAVIOUR_NAMES) is not None and _timed_column(table, _START_NAMES) is not None


def read_label_events(table: Table, units: str) -> LabelEvents:
    """Check and read a table of events."""
    behaviour = find_column(table, BEHAVIOUR_NAMES)
    start, stop = _timed_column(table, _START_NAMES), _timed_column(table, _STOP_NAMES)
    if behaviour is None or start is None or stop is None:
        raise wrong_columns(table, ("video", "start", "stop", "behaviour"), "is not a table of events")
    starts, stops = table.numbers(start[0]), table.numbers(stop[0])
    seconds = _in_seconds(table, units, {start[1], stop[1]}, starts, stops)
    problems = [*table.problems, *_number_problems(table, start[0], starts), *_number_problems(table, stop[0], stops)]
    good = np.isfinite(starts.values) & np.isfinite(stops.values)
    problems += _order_problems(table, starts.values, stops.values, good, seconds)
    events = _events(table, behaviour, starts.values, stops.values, good)
    problems += _empty_names(table, events)
    problems += overlaps(table.name, events)
    return LabelEvents(table, events, seconds, problems, find_column(table, VIDEO_NAMES) is not None)


def holds_whole_videos(table: Table) -> bool:
    """Whether a table names a behaviour for each video, and no times or frames."""
    columns = [find_column(table, names) for names in (VIDEO_NAMES, BEHAVIOUR_NAMES, _FRAME_NAMES)]
    if columns[0] is None or columns[1] is None or columns[2] is not None or _timed_column(table, _START_NAMES):
        return False
    return not set(table.texts(columns[1]).tolist()) <= {"0", "1", "-1", ""}


def read_whole_videos(table: Table) -> LabelEvents:
    """Behaviours that last from the first frame of a video to its last."""
    behaviour = find_column(table, BEHAVIOUR_NAMES)
    whole = np.zeros(len(table)), np.full(len(table), np.inf)
    events = _events(table, behaviour or "", *whole, np.ones(len(table), np.bool_))
    seen: set[tuple[str, str]] = set()
    problems = []
    for event in events:
        if (event.video, event.behaviour) in seen:
            what = f"{event.video} has {event.behaviour} for a second time"
            problems.append(Problem(table.name, event.line, what, "Remove one of the rows"))
        seen.add((event.video, event.behaviour))
    problems = [*table.problems, *problems, *_empty_names(table, events)]
    return LabelEvents(table, events, False, problems, True)


def _in_seconds(table: Table, units: str, named: set[str], starts: Numbers, stops: Numbers) -> bool:
    named.discard("")
    if len(named) > 1 or (named and units != "auto" and units not in named):
        what = f"the columns say {' and '.join(sorted(named))}" + (
            "" if units == "auto" else f", units={units!r} is given"
        )
        raise DataError([Problem(table.name, None, what, "Use one unit for start and stop")])
    if named or units != "auto":
        return (named or {units}) == {"seconds"}
    both = np.concatenate([starts.values, stops.values])
    if np.all(both[np.isfinite(both)] % 1 == 0):
        what = "start and stop are whole numbers, which may be frames or seconds"
        raise DataError([Problem(table.name, None, what, "Say which: units='frames' or units='seconds'")])
    return True


def _events(
    table: Table, behaviour: str, starts: NDArray[np.float64], stops: NDArray[np.float64], good: NDArray[np.bool_]
) -> tuple[Event, ...]:
    """The rows whose times make an event."""
    behaviours = table.texts(behaviour)
    videos, subjects = texts_or_empty(table, VIDEO_NAMES), texts_or_empty(table, SUBJECT_NAMES)
    return tuple(
        Event(videos[row], float(starts[row]), float(stops[row]), behaviours[row], int(table.lines[row]), subjects[row])
        for row in np.flatnonzero(good & (stops >= starts) & (starts >= 0))
    )


def texts_or_empty(table: Table, names: tuple[str, ...]) -> NDArray[np.object_]:
    """A column as texts, or empty texts where there is none."""
    column = find_column(table, names)
    return np.full(len(table), "", object) if column is None else table.texts(column)


def _number_problems(table: Table, name: str, column: Numbers) -> list[Problem]:
    return [
        Problem(table.name, int(table.lines[row]), f"{name} is {table.text_at(name, int(row))!r}", "Write a number")
        for row in np.flatnonzero(column.wrong | column.missing)
    ]


def _order_problems(
    table: Table, starts: NDArray[np.float64], stops: NDArray[np.float64], good: NDArray[np.bool_], seconds: bool
) -> list[Problem]:
    """Stops before starts, times before the video, and frame events that cover no frame."""
    problems = []
    for row in np.flatnonzero(good & ((stops < starts) | (starts < 0))):
        what = (
            f"stop {stops[row]:g} is before start {starts[row]:g}" if stops[row] < starts[row] else "start is below 0"
        )
        problems.append(Problem(table.name, int(table.lines[row]), what, "Correct the times"))
    if seconds:
        return problems
    for row in np.flatnonzero(good & (stops == starts)):
        what = f"the event from {starts[row]:g} to {stops[row]:g} covers no frame, because stop is exclusive"
        remedy = f"Write stop {stops[row] + 1:g}; if stop is the last frame in every row, add 1 to all"
        problems.append(Problem(table.name, int(table.lines[row]), what, remedy))
    for row in np.flatnonzero(good & ((starts % 1 != 0) | (stops % 1 != 0))):
        what = f"the event from {starts[row]:g} to {stops[row]:g} is not in whole frames"
        problems.append(Problem(table.name, int(table.lines[row]), what, "Say units='seconds', or correct the frames"))
    return problems


def _empty_names(table: Table, events: tuple[Event, ...]) -> list[Problem]:
    return [
        Problem(table.name, event.line, "the behaviour is empty", "Name it, or remove the row")
        for event in events
        if not event.behaviour
    ]
