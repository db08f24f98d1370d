"""What a behaviour task asks of its data: frames in order, labels for each, legal sizes; windows over features."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, Problem
from penstock.flow.making.clips import VideoRows, number_videos
from penstock.geometry.frame_sizes import is_legal, nearest_legal
from penstock.samples import Concat, Field, Raw, Sample, Schema, Store, Subset
from penstock.tasks import data_checks
from penstock.tasks.behaviour.settings import AUTO, legal_words

LABELS = "labels"
SHOWN_FRAMES = 5
# Most behaviours have no side.
USUAL_FLIP = 0.5


def video_ranges(source: Store) -> list[range]:
    """The frames of each video of a source, in order: runs of one group."""
    groups = number_videos(source)
    changes = np.flatnonzero(groups[1:] != groups[:-1]) + 1
    edges = [0, *changes.tolist(), len(groups)]
    return [range(start, stop) for start, stop in itertools.pairwise(edges) if stop > start]


def frame_labels(source: Store, label: str) -> NDArray[np.int8]:
    """The labels of every frame, frames × behaviours of 1, 0 and −1."""
    values = source.gather(label, np.arange(len(source)))
    if values is None:
        values = data_checks.labels_of(source, label)
    return np.asarray(values).astype(np.int8).reshape(len(source), -1)


def label_counts(labels: NDArray[np.int8]) -> tuple[tuple[int, int], ...]:
    """For each behaviour, the labelled frames in which it is and in which it is not."""
    present, absent = (labels == 1).sum(axis=0), (labels == 0).sum(axis=0)
    return tuple((int(yes), int(no)) for yes, no in zip(present, absent, strict=True))


def frame_times(source: Store, frames: range, rows: VideoRows) -> NDArray[np.float64]:
    """When each frame is shown, in seconds; counted at 30 frames a second where the data have no clock.

    A frame that is not in the data is shown between its neighbours.
    """
    counted = np.arange(len(rows.indices)) / 30
    try:
        times = np.asarray(source.column("time"), np.float64)[frames.start : frames.stop]
    except (KeyError, TypeError, ValueError):
        return counted
    every = np.arange(len(rows.indices))
    return counted if np.isnan(times).any() else np.interp(every, every[rows.is_stored], times)


def video_name(source: Store, frame: int) -> str:
    """The video that a frame is of."""
    known = source.annotations(frame) if source.knows_annotations else {}
    # A group may hold several videos; a key is that of the video with the number of the frame.
    name = str(known.get("key") or "").rpartition("#")[0] or known.get("group")
    return str(name) if name else source.describe(frame)


def made_from(source: Store) -> list[Mapping[str, Any]]:
    """What packs and other sources say of where their samples come from, for each that a source is made of."""
    if isinstance(source, (Subset, Concat)):
        return [one for each in source.below for one in made_from(each)]
    return [source.made_from()]


def flip_of(source: Store) -> float:
    """The probability of mirroring a clip that the projects of the data allow; the least of several."""
    said = [float(one["flip"]) for one in made_from(source) if isinstance(one.get("flip"), (int, float))]
    return min(said, default=USUAL_FLIP)


def frame_sizes(source: Store) -> list[tuple[int, int]]:
    """The different widths and heights of frames, the most frequent first; empty where only decoding would tell."""
    try:
        sizes = np.stack([source.column("width"), source.column("height")], axis=1)
    except (KeyError, ValueError):
        return []
    found, counts = np.unique(sizes, axis=0, return_counts=True)
    return [(int(width), int(height)) for width, height in found[np.argsort(-counts, kind="stable")]]


def fitted_image_size(source: Store, wanted: Any) -> tuple[int, int]:
    """The size at which networks see frames: as the user says, else that of the data, if networks take it."""
    if wanted != AUTO:
        return int(wanted[0]), int(wanted[1])
    sizes = frame_sizes(source) or [_first_size(source)]
    width, height = sizes[0]
    if len(sizes) > 1:
        some = ", ".join(f"{one}x{other}" for one, other in sizes[:SHOWN_FRAMES])
        near = f"[{nearest_legal(width)}, {nearest_legal(height)}]"
        raise _refused(source, f"its frames have different sizes ({some})", f"Choose one: image_size={near}")
    if not is_legal(width, height):
        remedy = f'Pack with size="{nearest_legal(width)}x{nearest_legal(height)}", or set image_size to that'
        raise _refused(source, f"its frames are {width}x{height}: that {legal_words(width, height)}", remedy)
    return width, height


def _first_size(source: Store) -> tuple[int, int]:
    image = source.schema.image
    assert image is not None  # asked for before
    height, width = np.asarray(source.decode(source.read(0))[image.name]).shape[:2]
    return int(width), int(height)


def need_one_behaviour_a_frame(source: Store, labels: NDArray[np.int8], behaviours: tuple[str, ...]) -> None:
    """Refuse frames with two behaviours where only one may be; they are named."""
    wrong = np.flatnonzero((labels == 1).sum(axis=1) > 1)
    if not len(wrong):
        return
    problems = [
        Problem(
            source.describe(int(frame)),
            None,
            f"it has {' and '.join(behaviours[at] for at in np.flatnonzero(labels[frame] == 1))} at once, and "
            "exclusive=True allows one behaviour a frame",
            "Correct the labels, or train with exclusive=False",
        )
        for frame in wrong[:SHOWN_FRAMES].tolist()
    ]
    if len(wrong) > SHOWN_FRAMES:
        more = f"{len(wrong) - SHOWN_FRAMES:,} more frames have several behaviours"
        problems.append(Problem(data_checks.name_of(source), None, more, "Likewise"))
    raise DataError(problems)


def need_labelled_frames(source: Store, labels: NDArray[np.int8]) -> None:
    """Refuse data in which no frame has a label."""
    if not (labels >= 0).any():
        raise _refused(source, "no frame has a label", "Label some, or choose other data")


def _refused(source: Store, what: str, remedy: str) -> DataError:
    return DataError([Problem(data_checks.name_of(source), None, what, remedy)])


# Windows over the features of whole videos, as a Source: what the sequence stage is trained on.
#
# A video's features are a file of rows (.npy, a row for each frame), mapped, so that no more than a window is read.


class VideoFeatures(NamedTuple):
    """The features of one video, and its labels, frames × behaviours of 1, 0 and −1."""

    path: Path
    labels: NDArray[np.int8]


class FeatureWindows(Store):
    """A sample is `features` (frames × F), `label` (frames × behaviours) and `length`: how many frames are real.

    Windows begin every `step` frames; the last one of a video ends with it. Those without any label are left out.
    Behind the end of a shorter video features are zero and labels −1.
    """

    def __init__(self, videos: Sequence[VideoFeatures], *, frames: int, step: int, behaviours: Sequence[str]) -> None:
        self.videos, self.frames = tuple(videos), frames
        features = self._features = int(np.load(videos[0].path, mmap_mode="r").shape[1])
        fields = (
            Field("features", "array", "float32", (frames, features)),
            Field("label", "array", "int64", (frames, len(behaviours))),
            Field("length", "number", "int64"),
        )
        self._schema = Schema(fields, tuple(behaviours))
        self._places = [
            (number, start)
            for number, video in enumerate(self.videos)
            for start in _starts(len(video.labels), frames, step)
            if (video.labels[start : start + frames] >= 0).any()
        ]

    def __len__(self) -> int:
        return len(self._places)

    def read(self, index: int) -> Raw:
        number, start = self._places[index]
        rows = np.load(self.videos[number].path, mmap_mode="r")[start : start + self.frames]
        return Raw(index, np.array(rows, np.float32))

    def decode(self, raw: Raw) -> Sample:
        number, start = self._places[raw.index]
        known = self.videos[number].labels[start : start + self.frames]
        features = np.zeros((self.frames, self._features), np.float32)
        labels = np.full((self.frames, known.shape[1]), -1, np.int64)
        features[: len(raw.data)], labels[: len(known)] = raw.data, known
        return {"features": features, "label": labels, "length": np.int64(len(known))}

    def fingerprint(self) -> str:
        """By what it is made of; features follow from a checkpoint that does not change."""
        return f"windows {self.frames} {self._features} {self._places} {[len(video.labels) for video in self.videos]}"


def _starts(count: int, frames: int, step: int) -> list[int]:
    if count <= frames:
        return [0] if count else []
    return [*range(0, count - frames, step), count - frames]
