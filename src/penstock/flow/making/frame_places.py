"""Which frame of its video each sample is, so that frames that were left out of the data are holes and shift nothing.

samples          0    1    2    3         frame 2 was left out
frame            0    1    3    4
rows             0    1    1*   2    3    * the frame before stands in its place, without labels
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.samples import Numbers, Store, Subset


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
