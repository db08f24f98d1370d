"""Runs of frames as samples: a source of clips over a source of frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.flow.steps import Clips as ClipsStep
from penstock.samples import Field, FieldsAt, ImagesAt, Numbers, Raw, Sample, Schema, Store, Subset

# Which frame of its video each sample is, so that frames that were left out of the data are holes and shift nothing.
#
# samples          0    1    2    3         frame 2 was left out
# frame            0    1    3    4
# rows             0    1    1*   2    3    * the frame before stands in its place, without labels


class VideoRows(NamedTuple):
    """A row for each frame of a video: the sample that it shows, and whether that is its own."""

    indices: Numbers
    is_stored: NDArray[np.bool_]

    def spread(self, values: NDArray[Any], missing: Any) -> NDArray[Any]:
        """Values of all samples as one for each row; `missing` for frames that are not there."""
        out = np.array(values[self.indices])
        out[~self.is_stored] = missing
        return out


def frame_places(source: Store, ranges: Sequence[range]) -> list[Numbers]:
    """For each video the place of each of its samples, from 0 at the first; without numbers of frames they adjoin."""
    numbers = source.frame_numbers()
    if numbers is None:
        return [np.arange(len(frames)) for frames in ranges]
    every = [numbers[frames.start : frames.stop] for frames in ranges]
    steps = np.concatenate([np.diff(own) for own in every] or [numbers[:0]])
    # Every fifth frame, if a user chooses so, are neighbours.
    unit = int(steps[steps > 0].min(initial=np.iinfo(np.int64).max))
    return [_places(own, unit) for own in every]


def _places(numbers: Numbers, unit: int) -> Numbers:
    if (np.diff(numbers) <= 0).any():
        return np.arange(len(numbers))  # a user's own order
    return (numbers - numbers[:1]) // unit


def rows_of_videos(source: Store, ranges: Sequence[range]) -> list[VideoRows]:
    """The rows of each video, with those of frames that were left out in between or at its beginning."""
    places = frame_places(source, ranges)
    return [_rows(frames, own, _lost_before(source, frames)) for frames, own in zip(ranges, places, strict=True)]


def _rows(frames: range, places: Numbers, lost_before: int) -> VideoRows:
    every = np.arange(-lost_before, int(places[-1]) + 1)
    shown = np.maximum(np.searchsorted(places, every, side="right") - 1, 0)
    return VideoRows(frames.start + shown, places[shown] == every)


def _lost_before(source: Store, frames: range) -> int:
    """How many frames packing left out before the first one of a video."""
    first = frames.start
    while isinstance(source, Subset):
        first = int(source.indices[first])
        source = source.source
    if not source.has_gaps:
        return 0
    numbers = source.frame_numbers()
    if numbers is None or (first and numbers[first - 1] < numbers[first] and _is_same_video(source, first)):
        return 0  # a user's part of a video begins here
    return int(numbers[first])


def _is_same_video(source: Store, index: int) -> bool:
    groups = source.group_numbers()
    return groups is None or bool(groups[index - 1] == groups[index])


class Clips(Store):
    """A sample is `frames` frames of one video, `stride` apart, around (or from, or up to) the frame that labels it.

    Clips never reach over the end of a video: `edge="repeat"` repeats its first or last frame there, `"drop"`
    leaves such clips out. The same holds for frames that were left out of the data: a clip keeps the time between its
    frames, and the frame before stands in the place of one that is missing.
    `label="all"` keeps the labels of every frame, as frames × classes.
    """

    def __init__(self, source: Store, step: ClipsStep) -> None:
        self.source, self.step = source, step
        self.frames = step.frames
        self._schema = clip_schema(source.schema, step)
        starts, stops = _videos(source)
        first, last = reach(step)
        if step.edge == "drop":
            anchors = [np.arange(a - first, b - last, step.step) for a, b in zip(starts, stops, strict=True)]
        else:
            anchors = [np.arange(a, b, step.step) for a, b in zip(starts, stops, strict=True)]
        self.anchors: Numbers = np.concatenate(anchors) if anchors else np.zeros(0, np.int64)
        self._starts, self._stops = starts, stops
        self._offsets = np.arange(self.frames, dtype=np.int64) * step.stride + first
        self._places = _places_in_a_row(source, starts, stops)
        if step.edge == "drop" and self._places is not None:
            self.anchors = self.anchors[self._are_whole(self.anchors)]

    @property
    def below(self) -> tuple[Store, ...]:
        return (self.source,)

    def __len__(self) -> int:
        return len(self.anchors)

    def frame_indices(self, indices: Numbers) -> Numbers:
        """The frames of these clips, clips × frames."""
        anchors = self.anchors[indices]
        video = np.searchsorted(self._starts, anchors, side="right") - 1
        frames = anchors[:, None] + self._offsets
        if self._places is not None:
            wanted = self._places[anchors][:, None] + self._offsets
            frames = np.searchsorted(self._places, wanted, side="right") - 1
        clipped: Numbers = np.clip(frames, self._starts[video][:, None], self._stops[video][:, None] - 1)
        return clipped

    def _are_whole(self, anchors: Numbers) -> NDArray[np.bool_]:
        """Whether all frames of the clips of these anchors are in the data."""
        assert self._places is not None
        found = self._places[self.frame_indices(np.arange(len(anchors)))]
        whole: NDArray[np.bool_] = (found == self._places[anchors][:, None] + self._offsets).all(axis=1)
        return whole

    def read(self, index: int) -> Raw:
        frames = self.frame_indices(np.array([index]))[0].tolist()
        return Raw(index, [self.source.read(frame) for frame in frames])

    def decode(self, raw: Raw) -> Sample:
        image = self.source.schema.image
        assert image is not None
        samples = [self.source.decode(frame) for frame in raw.data]
        return {**self.annotations(raw.index), image.name: np.stack([sample[image.name] for sample in samples])}

    def annotations(self, index: int) -> Sample:
        """What is known of the frame that labels the clip; with label="all" the labels of every frame."""
        sample = self.source.annotations(int(self.anchors[index]))
        if self.step.label == "all":
            frames = self.frame_indices(np.array([index]))[0].tolist()
            every = [self.source.annotations(frame) for frame in frames]
            sample.update({name: np.stack([one[name] for one in every]) for name in _per_frame(self.source.schema)})
        return sample

    @property
    def knows_annotations(self) -> bool:
        return self.source.knows_annotations

    @property
    def statistics(self) -> Mapping[str, Any] | None:
        return self.source.statistics

    def images_at(self, indices: Numbers) -> ImagesAt:
        store, frames, inner = self.source.images_at(self.frame_indices(indices).ravel())
        return ImagesAt(store, frames, inner * self.frames)

    def fields_at(self, indices: Numbers) -> FieldsAt:
        return FieldsAt(self, indices) if self.step.label == "all" else self.source.fields_at(self.anchors[indices])

    def column(self, name: str) -> NDArray[Any]:
        if self.step.label == "all" and name in _per_frame(self.source.schema):
            raise KeyError(f"{name!r} has one value for each frame of a clip.")
        return self.source.column(name)[self.anchors]


def reach(step: ClipsStep) -> tuple[int, int]:
    """How far the first and the last frame of a clip are from the frame that labels it."""
    whole = (step.frames - 1) * step.stride
    before = {"first": 0, "last": whole, "middle": (step.frames // 2) * step.stride, "all": 0}[step.label]
    return -before, whole - before


def clip_schema(schema: Schema, step: ClipsStep) -> Schema:
    if schema.image is None:
        raise OptionError("clips needs a source with an image field: each sample is a frame of a video.")
    if step.label != "all":
        return schema
    return replace(schema, fields=tuple(_stretched(field, schema, step.frames) for field in schema.fields))


def _per_frame(schema: Schema) -> list[str]:
    return [field.name for field in schema.fields if field.kind in ("labels", "class", "number")]


def _stretched(field: Field, schema: Schema, frames: int) -> Field:
    if field.name not in _per_frame(schema):
        return field
    shape = (frames, *(field.shape or ())) if field.kind != "labels" or field.shape else (frames, None)
    return Field(field.name, "array", field.dtype or "int64", shape)


def number_videos(source: Store) -> NDArray[Any]:
    """What tells the videos of a source apart: a number for every frame.

    One group may hold several videos, of one animal say; frames are then counted anew where the next one begins.
    """
    if isinstance(source, Subset):
        return number_videos(source.source)[source.indices]
    groups, frames = _groups(source), source.frame_numbers()
    begins = groups[1:] != groups[:-1]
    if frames is not None:
        begins |= frames[1:] <= frames[:-1]
    return np.concatenate([np.zeros(min(len(groups), 1), np.int64), np.cumsum(begins)])


def _groups(source: Store) -> NDArray[Any]:
    numbers = source.group_numbers()
    try:
        return source.column("group") if numbers is None else numbers
    except KeyError as error:
        raise OptionError(
            "clips needs to know which frames belong together: the source has no column 'group'. Pack the videos first."
        ) from error


def _videos(source: Store) -> tuple[Numbers, Numbers]:
    """Where each video begins and ends among the frames: a run of one group."""
    groups = number_videos(source)
    changes = np.flatnonzero(groups[1:] != groups[:-1]) + 1
    edges = np.concatenate([[0], changes, [len(groups)]]).astype(np.int64)
    return (edges[:-1], edges[1:]) if len(groups) else (edges[:0], edges[:0])


def _places_in_a_row(source: Store, starts: Numbers, stops: Numbers) -> Numbers | None:
    """Where each frame is if the frames of all videos stood in one row with their holes; None without any hole."""
    ranges = [range(start, stop) for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]
    places = frame_places(source, ranges)
    if all(own[-1] + 1 == len(own) for own in places):
        return None
    ends = np.cumsum([0, *(int(own[-1]) + 1 for own in places)])
    return np.concatenate([own + end for own, end in zip(places, ends, strict=False)])
