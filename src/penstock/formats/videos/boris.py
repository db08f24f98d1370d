"""BORIS tabular events: one line for each START, STOP and POINT, in seconds.

    Time,Media file path,Total length,FPS,Subject,Behavior,Behavioral category,Comment,Status
    12.480,/data/mouse1.mp4,600.0,25,No focal subject,groom,,,START

Newer exports call the last column "Behavior type"; older ones write some lines about the observation first.
"Aggregated events" have Start (s) and Stop (s), and are read as a table of events.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from penstock.errors import Problem
from penstock.formats.tables import Table, plain
from penstock.formats.videos.frame_labels import Event, overlaps
from penstock.formats.videos.label_events import (
    BEHAVIOUR_NAMES,
    SUBJECT_NAMES,
    VIDEO_NAMES,
    LabelEvents,
    find_column,
    texts_or_empty,
)
from penstock.storage.plain_files import open_file

_STATUS_NAMES = ("status", "behaviortype", "behaviourtype")
_TIME_NAMES = ("time", "times")
_PREAMBLE_LINES = 100


def holds_boris_events(table: Table) -> bool:
    """Whether a table has a time, a behaviour and a status."""
    return all(find_column(table, names) is not None for names in (_TIME_NAMES, BEHAVIOUR_NAMES, _STATUS_NAMES))


def boris_columns(table: Table) -> list[str | None]:
    """The columns that are read of such a table."""
    names = (_TIME_NAMES, BEHAVIOUR_NAMES, _STATUS_NAMES, VIDEO_NAMES, SUBJECT_NAMES)
    return [find_column(table, one) for one in names]


def header_line(path: Path) -> int:
    """The line where the table begins, after what older exports write about the observation; 1 where none is."""
    if path.suffix.lower() in (".parquet", ".pq"):
        return 1
    with open_file(path) as file:
        for number, line in zip(range(1, _PREAMBLE_LINES + 1), file, strict=False):
            names = {
                plain(name)
                for name in line.decode("utf-8-sig", "replace").replace("\t", ",").replace(";", ",").split(",")
            }
            if names & set(BEHAVIOUR_NAMES) and names & set(_TIME_NAMES) and names & set(_STATUS_NAMES):
                return number
    return 1


def read_boris_events(table: Table) -> LabelEvents:
    """Pair each START with its STOP, for each video, subject and behaviour."""
    problems = list(table.problems)
    open_states: dict[tuple[str, str, str], Event] = {}
    events: list[Event] = []
    for event, status in _lines(table, problems):
        key = (event.video, event.subject, event.behaviour)
        if status == "POINT":
            events.append(event)
        elif status == "START":
            if key in open_states:
                problems.append(_unpaired(table, open_states[key], "START", "STOP"))
            open_states[key] = event
        elif status == "STOP" and key in open_states:
            begun = open_states.pop(key)
            events.append(begun._replace(stop=event.start))
        elif status == "STOP":
            problems.append(_unpaired(table, event, "STOP", "START"))
    problems += [_unpaired(table, event, "START", "STOP") for event in open_states.values()]
    problems += overlaps(table.name, events)
    problems.sort(key=lambda problem: problem.row or 0)
    return LabelEvents(table, tuple(events), True, problems, find_column(table, VIDEO_NAMES) is not None)


def _lines(table: Table, problems: list[Problem]) -> list[tuple[Event, str]]:
    """Every good line as a point event with its status, in order of time; the others become problems."""
    time, status, behaviour = (find_column(table, names) for names in (_TIME_NAMES, _STATUS_NAMES, BEHAVIOUR_NAMES))
    times, statuses, behaviours = (
        table.numbers(time or "").values,
        table.texts(status or ""),
        table.texts(behaviour or ""),
    )
    videos, subjects = texts_or_empty(table, VIDEO_NAMES), texts_or_empty(table, SUBJECT_NAMES)
    found = []
    for row, line in enumerate(table.lines.tolist()):
        word = statuses[row].upper()
        wrong = _wrong(float(times[row]), word, behaviours[row])
        if wrong:
            problems.append(Problem(table.name, line, wrong, "Correct the line, or export the events again"))
            continue
        moment = float(times[row])
        found.append((Event(videos[row], moment, moment, behaviours[row], line, subjects[row]), word))
    return sorted(found, key=lambda pair: pair[0].start)


def _wrong(time: float, status: str, behaviour: str) -> str:
    if not np.isfinite(time) or time < 0:
        return "the time is not a number of seconds from 0"
    if status not in ("START", "STOP", "POINT"):
        return f"the status is {status!r}, expected START, STOP or POINT"
    return "" if behaviour else "the behaviour is empty"


def _unpaired(table: Table, event: Event, has: str, lacks: str) -> Problem:
    what = f"{event.behaviour} has a {has} at {event.start:g} s and no {lacks}"
    return Problem(table.name, event.line, what, f"Add the {lacks} in BORIS and export again")
