"""Windows over the features of whole videos, as a Source: what the sequence stage is trained on.

A video's features are a file of rows (.npy, a row for each frame), mapped, so that no more than a window is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.samples import Field, Raw, Sample, Schema, Store


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
