"""The frames of several videos, one after another: what every source made of videos offers."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, OptionError, Problem
from penstock.formats.grouping import groups_of, is_pattern
from penstock.formats.videos.framing import Framing
from penstock.formats.videos.label_matching import LabelSet
from penstock.formats.videos.video_cursors import Cursors
from penstock.formats.videos.video_lists import NamedVideo, open_footage
from penstock.formats.videos.video_parts import VideoPart
from penstock.samples import Field, Origin, Raw, Sample, Schema, Store, checked_index


class VideoFrames(Store):
    """Parts, each a video, as one source; how they come about is what its kinds differ in.

    Parts are read in order without knowing how many frames there are. `len`, `read` and `source[i]` need the
    exact table of frames, which one full pass over each video makes on first use.
    """

    @property
    def default_codec(self) -> str:
        """JPEG: lossless frames are five times larger, and the video has lost more than JPEG takes."""
        return "jpeg"

    def __init__(
        self, parts: Sequence[VideoPart], labels: LabelSet | None, problems: Sequence[Problem], given: dict[str, Any]
    ) -> None:
        self._parts = tuple(parts)
        self._problems = (*problems, *(() if labels is None else labels.problems))
        self._schema = _schema(labels)
        self._given = given
        self._starts: NDArray[np.int64] | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def made_from(self) -> dict[str, Any]:
        return dict(self._given)

    @property
    def parts(self) -> Sequence[VideoPart]:
        return self._parts

    def _limits(self) -> NDArray[np.int64]:
        """Where each video begins among all frames; made once, from the exact tables."""
        with self._lock:
            if self._starts is None:
                counts, problems = [0], []
                for part, wrong in zip(self._parts, self._each(VideoPart.uncounted), strict=True):
                    problems += wrong
                    counts.append(0 if wrong else len(part.footage.times()))
                if problems:
                    raise DataError(problems)
                self._starts = np.cumsum(counts)
            return self._starts

    def _each(self, ask: Callable[[VideoPart], list[Problem]]) -> list[list[Problem]]:
        """Ask every part, several at a time; decoding releases the GIL."""
        with ThreadPoolExecutor(min(len(self._parts), os.cpu_count() or 1)) as pool:
            return list(pool.map(ask, self._parts))

    def _locate(self, index: int) -> tuple[VideoPart, int]:
        starts = self._limits()
        position = checked_index(index, int(starts[-1]))
        which = int(np.searchsorted(starts, position, side="right")) - 1
        return self._parts[which], position - int(starts[which])

    def __len__(self) -> int:
        return int(self._limits()[-1])

    def read(self, index: int) -> Raw:
        part, number = self._locate(index)
        return Raw(index, part.footage.picture(number))

    def decode(self, raw: Raw) -> Sample:
        part, number = self._locate(raw.index)
        return part.decode(Raw(number, raw.data))

    def annotations(self, index: int) -> Sample:
        part, number = self._locate(index)
        return part.annotations(number)

    def origin(self, index: int) -> Origin:
        part, number = self._locate(index)
        return part.footage.origin(number)

    def column(self, name: str) -> NDArray[Any]:
        """One value for every frame: key, group, time, frame, the vectors of labels, or the split where it is said."""
        self._limits()
        return np.concatenate([_column(part, name) for part in self._parts])

    def problems(self) -> list[Problem]:
        """What is wrong as far as can be seen without decoding every frame."""
        return [*self._problems, *(problem for found in self._each(VideoPart.problems) for problem in found)]

    def damage(self) -> list[Problem]:
        """What decoding every frame finds beyond `problems`."""
        known = set(self.problems())
        found = [problem for problems in self._each(VideoPart.damage) for problem in problems]
        return [problem for problem in found if problem not in known]

    def counts(self) -> dict[str, int]:
        return {"videos": len(self._parts)}


def parts_of(
    videos: Sequence[NamedVideo],
    framing: Framing,
    labels: LabelSet | None,
    group_from: str | None,
    splits: Sequence[str | None] | None = None,
) -> tuple[list[VideoPart], list[Problem]]:
    """One part for each video, with its group; names that do not fit the pattern are problems."""
    if group_from is not None and not is_pattern(group_from):
        raise OptionError(f"group_from={group_from!r} must be a name pattern for videos, such as '{{animal}}_*'.")
    names = [video.name for video in videos]
    groups, problems = groups_of(names, [video.path.as_posix() for video in videos], None, group_from)
    per_video = [None] * len(videos) if labels is None else labels.per_video
    cursors = Cursors()
    parts = [
        VideoPart(video.name, group, open_footage(video.path, framing, cursors), own, split)
        for video, group, own, split in zip(
            videos, groups, per_video, splits if splits is not None else [None] * len(videos), strict=True
        )
    ]
    return parts, problems


def _schema(labels: LabelSet | None) -> Schema:
    fields = [Field("image", "image")]
    if labels is not None:
        fields.append(Field("labels", "labels", "int8", (len(labels.classes),)))
    fields += [Field("time", "number", "float64"), Field("frame", "number", "int32")]
    return Schema(tuple(fields), labels.classes if labels is not None else ())


def _column(part: VideoPart, name: str) -> NDArray[Any]:
    if name == "labels" and part.labels is not None:
        return part.label_rows(part.labels)
    times = part.footage.times()
    if name == "split" and part.split is not None:
        return np.full(len(times), part.split, object)
    columns: dict[str, Callable[[], NDArray[Any]]] = {
        "time": lambda: times,
        "frame": lambda: np.arange(len(times), dtype=np.int32),
        "group": lambda: np.full(len(times), part.group, object),
        "key": lambda: np.array([f"{part.key}#{number}" for number in range(len(times))], object),
    }
    if name not in columns:
        raise KeyError(
            f"no column {name!r}; there are {', '.join(columns)} and, where there are such, labels and split."
        )
    return columns[name]()
