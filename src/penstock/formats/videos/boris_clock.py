"""The clock of BORIS: times count from the begin of an observation, not of a video.

    time in the export  =  Time offset (s)  +  lengths of the videos played before  +  time in the video

An observation may play several videos one after another, and may have a time offset, which BORIS adds when it writes an
event. Newer exports have both in columns; older ones write the offset above the table, and no lengths of single videos.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from penstock.errors import Problem
from penstock.formats.tables import Table, plain
from penstock.formats.videos.label_events import VIDEO_NAMES, LabelEvents, find_column, texts_or_empty
from penstock.storage.plain_files import open_file
from penstock.wording import counted

_OFFSET_NAMES = ("timeoffsets", "timeoffset")
_SOURCE_NAMES = ("source",)
_LENGTH_NAMES = ("mediadurations", "mediaduration")
_OBSERVATION_NAMES = ("observationid",)
_FIRST_PLAYER = "player1"
_ROUNDING = 1e-3  # BORIS writes milliseconds
_REMEDY = "Export the events with BORIS 8 or newer, which writes the length of each video, or code each video by itself"


class Preamble(NamedTuple):
    """What older exports write above the table."""

    offset_seconds: float = 0.0
    videos: tuple[str, ...] = ()  # those that are played one after another


def read_preamble(path: Path, lines: int) -> Preamble:
    """Read the lines above the table, of which there are so many."""
    offset, videos = 0.0, []
    with open_file(path) as file:
        for _, line in zip(range(lines), file, strict=False):
            cells = line.decode("utf-8-sig", "replace").strip().replace("\t", ",").replace(";", ",").split(",")
            name, value = plain(cells[0]), cells[1].strip() if len(cells) > 1 else ""
            if name in _OFFSET_NAMES:
                offset = _number(value)
            elif name == _FIRST_PLAYER and value:
                videos.append(value)
    return Preamble(offset, tuple(videos))


def clock_columns(table: Table) -> list[str | None]:
    """The columns that tell when a video begins."""
    return [find_column(table, names) for names in (_OFFSET_NAMES, _SOURCE_NAMES, _LENGTH_NAMES)]


def with_video_times(content: LabelEvents, preamble: Preamble) -> LabelEvents:
    """Events with times that count from the begin of their video; those whose begin nobody knows are problems."""
    if not content.seconds:
        return content
    table = content.table
    begins, problems = _begins(table, preamble)
    by_line = dict(zip(table.lines.tolist(), begins, strict=True))
    events = []
    for event in content.events:
        begin = by_line.get(event.line, 0.0)
        start, stop = event.start - begin, event.stop - begin
        if start < -_ROUNDING:
            what = f"{event.behaviour} starts at {event.start:g} s, before its video begins at {begin:g} s of the clock"
            problems.append(Problem(table.name, event.line, what, "Correct the time offset of the observation"))
            continue
        events.append(event._replace(start=max(0.0, start), stop=max(0.0, stop)) if begin else event)
    return content._replace(events=tuple(events), problems=[*content.problems, *problems])


def _begins(table: Table, preamble: Preamble) -> tuple[list[float], list[Problem]]:
    """When the video of each row begins on the clock of its observation."""
    offsets, sources, lengths = (_texts(table, names) for names in (_OFFSET_NAMES, _SOURCE_NAMES, _LENGTH_NAMES))
    videos, observations = (texts_or_empty(table, names).tolist() for names in (VIDEO_NAMES, _OBSERVATION_NAMES))
    played = _played(table, observations, videos, preamble) if find_column(table, _SOURCE_NAMES) is None else {}
    begins, problems, told = [], [], set()
    for row, line in enumerate(table.lines.tolist()):
        begin = _number(offsets[row]) if offsets is not None else preamble.offset_seconds
        several = _of_first_player(sources[row]) if sources is not None else played.get(observations[row], ())
        if len(several) > 1:
            before = _length_before(videos[row], several, lengths[row] if lengths is not None else "")
            if before is None and (observations[row], videos[row]) not in told:
                told.add((observations[row], videos[row]))
                what = (
                    f"its observation plays {counted(len(several), 'video')} one after another ({', '.join(several)}), "
                )
                what += "and the times count from the begin of the first: "
                what += f"when {videos[row] or 'this one'} begins is not known"
                problems.append(Problem(table.name, line, what, _REMEDY))
            begin += before or 0.0
        begins.append(begin)
    return begins, problems


def _texts(table: Table, names: tuple[str, ...]) -> Sequence[str] | None:
    column = find_column(table, names)
    return None if column is None else [str(text) for text in table.texts(column)]


def _played(
    table: Table, observations: Sequence[str], videos: Sequence[str], preamble: Preamble
) -> dict[str, tuple[str, ...]]:
    """The videos of each observation of an export that does not list them, in the order of their events."""
    if find_column(table, _OBSERVATION_NAMES) is None:
        return {"": preamble.videos} if len(preamble.videos) > 1 else {}
    found: dict[str, dict[str, None]] = {}
    for observation, video in zip(observations, videos, strict=True):
        if video:
            found.setdefault(observation, {})[video] = None
    return {observation: tuple(names) for observation, names in found.items()}


def _of_first_player(source: str) -> tuple[str, ...]:
    """player #1:a.mp4;b.mp4|player #2:c.mp4: the second player shows another view at the same time."""
    first = source.split("|")[0]
    _, _, names = first.partition(":") if plain(first).startswith(_FIRST_PLAYER) else ("", "", first)
    return tuple(name.strip() for name in names.split(";") if name.strip())


def _length_before(video: str, several: Sequence[str], lengths: str) -> float | None:
    """The lengths of the videos before this one, as BORIS adds them up: milliseconds, the rest cut off."""
    known = [_number(text) for text in lengths.split("|")[0].split(";")]
    if video not in several or len(known) != len(several) or not all(length > 0 for length in known):
        return None
    total = 0.0
    for length in known[: several.index(video)]:
        total += math.floor(length * 1000 + 1e-6) / 1000
    return total


def _number(text: str) -> float:
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        return 0.0
    return value if np.isfinite(value) else 0.0
