"""Labels of the frames of one video: a row for each frame, or events with a start and a stop.

Every frame has a vector with one entry for each behaviour: 1 present, 0 absent, −1 not labelled. An event covers
frame n when start ≤ n < stop in frames (the stop is exclusive), or start ≤ time of n < stop in seconds. Label
tables round to milliseconds, so times count as equal within half a millisecond. An event that falls between the
times of two frames (a point event, or a very short one) belongs to the frame that is shown when it begins.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.errors import Problem
from penstock.wording import counted

BACKGROUND = "background"
UNLABELLED = -1
_HALF_MILLISECOND = 0.0005
_REMEDY = "Use the labels that were made for this video, whole and not re-encoded"

Labels = NDArray[np.int8]
Times = NDArray[np.float64]


class Event(NamedTuple):
    """One behaviour from start to stop (equal for a point event), and the line it was read from."""

    video: str
    start: float
    stop: float
    behaviour: str
    line: int
    subject: str = ""


class FrameLabels(Protocol):
    """What each kind of label table offers."""

    def at(self, number: int, time_seconds: float, until_seconds: float) -> Labels:
        """The labels of one frame, which is shown from one time until another."""
        ...

    def over(self, times: Times) -> Labels:
        """The labels of all frames, given when each is shown."""
        ...

    def misfits(self, video: str, frames: int, end_seconds: float) -> list[Problem]:
        """Where the labels do not fit the frames that the video really has."""
        ...

    def end_within(self, frames: int, end_seconds: float) -> bool:
        """Whether none of them begins behind so many frames."""
        ...


def with_background(values: Labels) -> Labels:
    """The column `background` for other behaviours: 0 beside a 1, 1 where all are 0, else −1."""
    some = (values == 1).any(axis=1)
    none = (values == 0).all(axis=1)
    return np.where(some, 0, np.where(none, 1, UNLABELLED)).astype(np.int8)


@dataclass(frozen=True)
class NoLabels:
    """A video without a label file among videos that have one."""

    behaviour_count: int

    def at(self, number: int, time_seconds: float, until_seconds: float) -> Labels:
        return np.full(self.behaviour_count, UNLABELLED, np.int8)

    def over(self, times: Times) -> Labels:
        return np.full((len(times), self.behaviour_count), UNLABELLED, np.int8)

    def end_within(self, frames: int, end_seconds: float) -> bool:
        return True

    def misfits(self, video: str, frames: int, end_seconds: float) -> list[Problem]:
        return []


@dataclass(frozen=True)
class RowLabels:
    """One row of values for each frame, with the line of each."""

    file: str
    values: Labels
    lines: NDArray[np.int64]

    def at(self, number: int, time_seconds: float, until_seconds: float) -> Labels:
        if number >= len(self.values):
            return np.full(self.values.shape[1], UNLABELLED, np.int8)
        vector: Labels = self.values[number].copy()
        return vector

    def over(self, times: Times) -> Labels:
        out = np.full((len(times), self.values.shape[1]), UNLABELLED, np.int8)
        shared = min(len(times), len(self.values))
        out[:shared] = self.values[:shared]
        return out

    def end_within(self, frames: int, end_seconds: float) -> bool:
        return len(self.values) <= frames

    def misfits(self, video: str, frames: int, end_seconds: float) -> list[Problem]:
        rows = len(self.values)
        if rows == frames:
            return []
        counts = f"{rows:,} label rows for the {counted(frames, 'frame')} of {video}"
        if rows < frames:
            what = f"{counts}: {frames - rows:,} too few; frame {rows:,} is the first without a row"
            line = int(self.lines[-1]) if rows else None
        else:
            what = f"{counts}: {rows - frames:,} too many; this row, for frame {frames:,}, is the first without a frame"
            line = int(self.lines[frames])
        return [Problem(self.file, line, what, _REMEDY)]


@dataclass(frozen=True)
class EventLabels:
    """Events of one video; `background` is where no other behaviour is."""

    file: str
    events: tuple[Event, ...]
    classes: tuple[str, ...]
    seconds: bool

    @functools.cached_property
    def _starts(self) -> Times:
        return np.array([event.start for event in self.events], np.float64)

    @functools.cached_property
    def _stops(self) -> Times:
        return np.array([event.stop for event in self.events], np.float64)

    @functools.cached_property
    def _numbers(self) -> NDArray[np.int64]:
        return np.array([self.classes.index(event.behaviour) for event in self.events], np.int64)

    def at(self, number: int, time_seconds: float, until_seconds: float) -> Labels:
        shown, gone, slack = float(number), float(number + 1), 0.0
        if self.seconds:
            shown, gone, slack = time_seconds, until_seconds, _HALF_MILLISECOND
        covers = (self._starts <= shown + slack) & (shown + slack < self._stops)
        shown_at_start = (shown - slack <= self._starts) & (self._starts < gone - slack)
        between = shown_at_start & (self._stops <= gone + slack)
        present = np.zeros((1, len(self.classes)), np.int8)
        present[0, self._numbers[covers | between]] = 1
        vector: Labels = self._completed(present)[0]
        return vector

    def over(self, times: Times) -> Labels:
        clock, slack = (times, _HALF_MILLISECOND) if self.seconds else (np.arange(len(times), dtype=np.float64), 0.0)
        present = np.zeros((len(times), len(self.classes)), np.int8)
        first = np.searchsorted(clock + slack, self._starts)
        last = np.searchsorted(clock + slack, self._stops)
        shown_at_start = np.maximum(np.searchsorted(clock - slack, self._starts, side="right") - 1, 0)
        first = np.where(first == last, shown_at_start, first)
        last = np.maximum(last, first + 1)
        for start, stop, number in zip(first, last, self._numbers, strict=True):
            present[start:stop, number] = 1
        return self._completed(present)

    def _completed(self, present: Labels) -> Labels:
        if BACKGROUND in self.classes:
            place = self.classes.index(BACKGROUND)
            present[:, place] = with_background(np.delete(present, place, axis=1))
        return present

    def end_within(self, frames: int, end_seconds: float) -> bool:
        return bool((self._starts < self._end(frames, end_seconds)).all())

    def _end(self, frames: int, end_seconds: float) -> float:
        return end_seconds + _HALF_MILLISECOND if self.seconds else frames

    def misfits(self, video: str, frames: int, end_seconds: float) -> list[Problem]:
        if self.seconds and np.isnan(end_seconds):
            what = f"the events are in seconds, and {video} has no clock"
            return [Problem(self.file, None, what, "Give start and stop in frames")]
        end = self._end(frames, end_seconds)
        words = f"which ends at {end_seconds:.3f} s" if self.seconds else f"which has {counted(frames, 'frame')}"
        return [
            Problem(self.file, event.line, f"{event.behaviour} starts at {event.start:g} in {video}, {words}", _REMEDY)
            for event in self.events
            if event.start >= end
        ]


def overlaps(file: str, events: Sequence[Event]) -> Iterator[Problem]:
    """Events of one behaviour (and subject) that begin before the one before them has ended."""
    last: dict[tuple[str, str, str], Event] = {}
    for event in sorted(events, key=lambda event: (event.start, event.stop)):
        key = (event.video, event.subject, event.behaviour)
        before = last.get(key)
        if before is not None and event.start < before.stop:
            what = f"{event.behaviour} at {event.start:g} begins before the one of line {before.line} ends"
            yield Problem(file, event.line, f"{what} ({before.stop:g})", "Join the two events, or correct their times")
        last[key] = event if before is None or event.stop >= before.stop else before
