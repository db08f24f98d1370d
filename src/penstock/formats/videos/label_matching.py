"""Which labels belong to which video, and the one list of behaviours that they all share.

| `labels` is                          | and means                                                                 |
|--------------------------------------|---------------------------------------------------------------------------|
| 'labels/{stem}.csv'                  | the file of each video; {stem} is its file name without ending; with a *, |
|                                      | the file that matches, of the video with the longest such name            |
| a folder, a pattern with *, a list   | files named as a video, or as a video with _labels or an ending of        |
|                                      | predictions (_bouts …); other files of events                             |
| a file or a DataFrame                | events of many videos (a column names them), or labels of the only video; |
|                                      | without start and stop, what each whole video shows                       |
| {video: file, DataFrame or Table}    | the labels of these videos                                                |

A video without labels is not labelled (−1), with a warning.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from penstock.errors import DataError, Problem, nearest
from penstock.formats.paths import expand, files_below
from penstock.formats.tables import TABLE_ENDINGS, Table, read_table, table_of_frame
from penstock.formats.videos.boris import boris_columns, header_line, holds_boris_events, read_boris_events
from penstock.formats.videos.boris_clock import Preamble, clock_columns, read_preamble, with_video_times
from penstock.formats.videos.foreign_labels import FOREIGN_ENDINGS, foreign_problem
from penstock.formats.videos.frame_hdf5 import HDF5_ENDINGS
from penstock.formats.videos.frame_labels import BACKGROUND, Event, EventLabels, FrameLabels, NoLabels
from penstock.formats.videos.label_events import (
    LabelEvents,
    event_columns,
    holds_events,
    holds_whole_videos,
    read_label_events,
    read_whole_videos,
)
from penstock.formats.videos.label_hdf5 import read_label_hdf5
from penstock.formats.videos.label_options import LabelOptions
from penstock.formats.videos.label_rows import LabelRows, read_label_rows
from penstock.formats.videos.label_subjects import subject_problems, unused_columns, with_subject
from penstock.formats.videos.video_lists import NamedVideo
from penstock.wording import counted

# What may stand behind the name of a video: labels, and the files that predictions are written to.
LABEL_SUFFIXES = ("_labels", "_predictions", "_ethogram", "_bouts", "_events", "_outputs")


@dataclass(frozen=True)
class LabelSet:
    """The behaviours, the labels of each video in the order of the videos, and what was wrong."""

    classes: tuple[str, ...]
    per_video: tuple[FrameLabels, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class _Reading:
    """One table as read; `video` is the number of the video it belongs to, None when its rows must say."""

    video: int | None
    content: LabelRows | LabelEvents


def match_labels(labels: Any, videos: Sequence[NamedVideo], options: LabelOptions) -> LabelSet:
    """Read every label table and give each video its labels."""
    names = _VideoNames(videos)
    problems: list[Problem] = []
    readings, failed = [], set()
    for video, given in _tables(labels, names, problems):
        try:
            readings.append(_Reading(video, _read(given, options)))
        except DataError as error:
            problems += error.problems
            failed |= set(range(len(videos))) if video is None else {video}
    events = [reading.content for reading in readings if isinstance(reading.content, LabelEvents)]
    problems += subject_problems(events, options.subject, [reading.content.table.name for reading in readings])
    readings = [_Reading(reading.video, _with_subject(reading.content, options.subject, names)) for reading in readings]
    if _is_pattern(labels):
        problems += _shared_files(readings, videos)
    known, agreed_with = _all_classes(readings, options.classes)
    found: dict[int, FrameLabels] = {}
    for reading in readings:
        problems += reading.content.problems
        for number, own in _assigned(reading, names, known, agreed_with, problems):
            if number in found:
                what = f"{videos[number].name} has labels from two tables"
                problems.append(Problem(reading.content.table.name, None, what, "Keep one of them"))
            found[number] = own
    # Of a table that cannot be read it is not known which videos it has labels of.
    problems += [unlabelled(video) for number, video in enumerate(videos) if number not in found.keys() | failed]
    if not found and all(problem.warning for problem in problems):
        problems.append(_nothing_found(labels, videos))
    per_video = tuple(found.get(number, NoLabels(len(known))) for number in range(len(videos)))
    return LabelSet(known, per_video, tuple(dict.fromkeys(problems)))


def unlabelled(video: NamedVideo) -> Problem:
    what = "has no labels; all its frames count as not labelled (−1)"
    return Problem(video.path.as_posix(), None, what, "Add its label file, or leave the video out", warning=True)


def _nothing_found(labels: Any, videos: Sequence[NamedVideo]) -> Problem:
    given = labels if isinstance(labels, str | os.PathLike) else "labels"
    example = videos[0].stem
    return Problem(
        os.fspath(given),
        None,
        f"there are no labels for any of the {counted(len(videos), 'video')}",
        f"Look for {example}.csv",
    )


def _shared_files(readings: Sequence[_Reading], videos: Sequence[NamedVideo]) -> list[Problem]:
    """Files that a pattern gives to two videos of one stem, unless their rows say which of them is meant."""
    owners: dict[str, list[NamedVideo]] = {}
    for reading in readings:
        content = reading.content
        says_which = isinstance(content, LabelEvents) and content.names_videos
        if reading.video is not None and not says_which:
            owners.setdefault(content.table.name, []).append(videos[reading.video])
    return [_shared_file(file, sharing) for file, sharing in owners.items() if len(sharing) > 1]


def _shared_file(file: str, videos: Sequence[NamedVideo]) -> Problem:
    names = " and of ".join(video.name for video in videos)
    remedy = (
        "Use {name} in place of {stem}, which is what they are called here, rename one, or map each video to its file"
    )
    return Problem(file, None, f"it would be the labels of {names}", remedy)


class _VideoNames:
    """Finds a video by what a table calls it: its name or path, its file name, or its stem."""

    def __init__(self, videos: Sequence[NamedVideo]) -> None:
        self.videos = videos
        self._levels: list[dict[str, list[int]]] = [{}, {}, {}]
        for number, video in enumerate(videos):
            whole = {video.name, video.path.as_posix(), video.path.absolute().as_posix()}
            for level, texts in enumerate((whole, {video.path.name}, {video.stem})):
                for text in texts:
                    self._levels[level].setdefault(text, []).append(number)

    def number(self, written: str) -> int | None:
        """The number of the video, or None where no video or more than one is called so."""
        path = written.strip().replace("\\", "/")
        name = path.rsplit("/", 1)[-1]
        for known, text in zip(self._levels, (path, name, name), strict=True):
            if len(known.get(text, ())) == 1:
                return known[text][0]
        stem = name.rsplit(".", 1)[0]
        found = self._levels[2].get(stem, [])
        return found[0] if len(found) == 1 else None

    def nearest(self, written: str) -> str:
        return nearest(written, [video.name for video in self.videos])


def _tables(labels: Any, names: _VideoNames, problems: list[Problem]) -> Iterator[tuple[int | None, Any]]:
    """Files and DataFrames with the video each belongs to, as far as that is known without reading them."""
    if isinstance(labels, Mapping):
        yield from _of_mapping(labels, names, problems)
    elif _is_pattern(labels):
        yield from _of_pattern(labels, names)
    elif isinstance(labels, str | os.PathLike | Sequence):
        yield from _of_paths(labels, names)
    else:
        yield (0 if len(names.videos) == 1 else None), labels


def _of_mapping(
    labels: Mapping[Any, Any], names: _VideoNames, problems: list[Problem]
) -> Iterator[tuple[int | None, Any]]:
    for key, given in labels.items():
        number = names.number(os.fspath(key))
        if number is None:
            what = f"labels are given for {key!s}, which is none of the videos"
            problems.append(Problem(str(key), None, what, f"Name a video.{names.nearest(str(key))}"))
            continue
        yield number, given if hasattr(given, "columns") else Path(given)


def _is_pattern(labels: Any) -> TypeGuard[str]:
    return isinstance(labels, str) and "{" in labels


def _of_pattern(labels: str, names: _VideoNames) -> Iterator[tuple[int | None, Any]]:
    owners: dict[Path, int] = {}
    videos = {video.path.absolute() for video in names.videos}  # m1* fits the video itself where labels lie beside it
    for number in sorted(range(len(names.videos)), key=lambda number: len(names.videos[number].stem)):
        video = names.videos[number]
        path = Path(_filled(labels, video.stem, video.name))
        if path.is_file():
            yield number, path
        elif glob.has_magic(labels):  # m10_labels.csv fits m1* too, and is that of m10
            pattern = _filled(labels, glob.escape(video.stem), glob.escape(video.name))
            files = [Path(found) for found in glob.iglob(pattern) if Path(found).is_file()]
            owners |= {file: number for file in files if file.absolute() not in videos}
    yield from ((number, path) for path, number in owners.items())


def _filled(labels: str, stem: str, name: str) -> str:
    return labels.replace("{stem}", stem).replace("{name}", name)


def _of_paths(labels: Any, names: _VideoNames) -> Iterator[tuple[int | None, Any]]:
    given = expand(labels)
    endings = TABLE_ENDINGS | FOREIGN_ENDINGS
    files = [file for path in given for file in (files_below(path, endings) if path.is_dir() else [path])]
    if len(files) == 1 and len(names.videos) == 1:
        yield 0, files[0]
        return
    for file in files:
        yield _number_by_name(file.stem, names), file


def _number_by_name(stem: str, names: _VideoNames) -> int | None:
    """The video that a file is named after."""
    number = names.number(stem)
    suffix = next((suffix for suffix in LABEL_SUFFIXES if stem.endswith(suffix)), "")
    return names.number(stem.removesuffix(suffix)) if number is None and suffix else number


def _read(given: Any, options: LabelOptions) -> LabelRows | LabelEvents:
    if isinstance(given, Path) and given.suffix.lower() in HDF5_ENDINGS:
        return read_label_rows(read_label_hdf5(given), options)
    table = _read_file(given) if isinstance(given, Path) else given
    table = table if isinstance(table, Table) else table_of_frame(table)
    preamble = _preamble(given) if isinstance(given, Path) else Preamble()
    if holds_boris_events(table):
        read = with_video_times(read_boris_events(table), preamble)
        return _naming_unused(read, [*boris_columns(table), *clock_columns(table)])
    if holds_events(table):
        read = with_video_times(read_label_events(table, options.units), preamble)
        return _naming_unused(read, [*event_columns(table), *clock_columns(table)])
    if holds_whole_videos(table):
        return _naming_unused(read_whole_videos(table), event_columns(table))
    return read_label_rows(table, options)


def _preamble(path: Path) -> Preamble:
    lines = header_line(path) - 1
    return read_preamble(path, lines) if lines else Preamble()


def _read_file(path: Path) -> Table:
    try:
        foreign = foreign_problem(path)
        if foreign is not None:
            raise DataError([foreign])
        return read_table(path, first_line=header_line(path))
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise DataError([Problem(path.as_posix(), None, what, "Check the path")]) from error


def _naming_unused(content: LabelEvents, used: list[str | None]) -> LabelEvents:
    return content._replace(problems=[*content.problems, *unused_columns(content.table, used)])


def _with_subject(content: LabelRows | LabelEvents, subject: str | None, names: _VideoNames) -> LabelRows | LabelEvents:
    if isinstance(content, LabelRows):
        return content
    return with_subject(content, subject, lambda video: names.number(video) is not None)


def _all_classes(
    readings: Sequence[_Reading], given: tuple[str, ...] | None
) -> tuple[tuple[str, ...], LabelRows | None]:
    """The behaviours: as given; else those of the first table of rows, told with them; else of all events, sorted."""
    if given is not None:
        return (given if BACKGROUND in given else (BACKGROUND, *given)), None
    for reading in readings:
        if isinstance(reading.content, LabelRows):
            return reading.content.behaviours, reading.content
    contents = [reading.content for reading in readings if isinstance(reading.content, LabelEvents)]
    names = {event.behaviour for content in contents for event in content.events} - {"", BACKGROUND}
    return (BACKGROUND, *sorted(names)), None


def _assigned(
    reading: _Reading,
    names: _VideoNames,
    classes: tuple[str, ...],
    agreed_with: LabelRows | None,
    problems: list[Problem],
) -> Iterator[tuple[int, FrameLabels]]:
    """The labels of one table for each video that it is about."""
    content = reading.content
    if isinstance(content, LabelRows):
        if reading.video is None:
            problems.append(_homeless(content.table))
            return
        own, wrong = content.arranged(classes)
        problems += wrong if agreed_with is None else content.differences(agreed_with)
        yield reading.video, own
    elif reading.video is None and not content.names_videos:
        problems.append(_homeless(content.table))
    else:
        events = _known_events(content, classes, problems)
        for number, chosen in _by_video(content, reading.video, events, names, problems).items():
            yield number, EventLabels(content.table.name, tuple(chosen), classes, content.seconds)


def _homeless(table: Table) -> Problem:
    remedy = "Name the file as its video, use labels='labels/{stem}.csv', or add a column 'video'"
    return Problem(table.name, None, "it does not say which video it belongs to", remedy, warning=True)


def _known_events(content: LabelEvents, classes: tuple[str, ...], problems: list[Problem]) -> list[Event]:
    problems += [
        Problem(
            content.table.name,
            event.line,
            f"the behaviour {event.behaviour!r} is not one of {', '.join(classes)}",
            f"Correct it, or add it to classes.{nearest(event.behaviour, classes)}",
        )
        for event in content.events
        if event.behaviour and event.behaviour not in classes
    ]
    return [event for event in content.events if event.behaviour in classes]


def _by_video(
    content: LabelEvents, video: int | None, events: Sequence[Event], names: _VideoNames, problems: list[Problem]
) -> dict[int, list[Event]]:
    """Events of each video; those of videos that are not here are left out with a warning for each name."""
    if video is not None and not content.names_videos:
        return {video: list(events)}
    own: dict[int, list[Event]] = {} if video is None else {video: []}
    strangers: dict[str, Event] = {}
    for event in events:
        number = names.number(event.video)
        if number is None:
            strangers.setdefault(event.video, event)
        elif video is None or number == video:
            own.setdefault(number, []).append(event)
    # A table that belongs to one video, and all of whose rows are about others, is a mistake.
    mistaken = video is not None and not own[video]
    for written, event in strangers.items():
        what = f"{written!r} is none of the videos, or more than one is called so"
        remedy = f"Its events are left out.{names.nearest(written)}"
        problems.append(Problem(content.table.name, event.line, what, remedy, warning=not mistaken))
    return own
