"""One video through the networks: frames are pushed as they come, features and logits are kept as they come.

frames ─► FeatureStream ─► FeatureFile (grows on the disk) ─► sequence network ─► Ethogram
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from penstock.formats.videos.frame_streams import FrameBlock, StreamedVideo
from penstock.formats.videos.frame_supplies import Begin
from penstock.prediction.devices import Placed
from penstock.results.ethograms import Ethogram
from penstock.results.feature_files import Column, FeatureFile
from penstock.tasks.behaviour.streaming import (
    BLOCK_FRAMES,
    BLOCK_FRAMES_ELSEWHERE,
    FeatureStream,
    Streamed,
    sequence_blocks,
)

SPATIAL, MOTION, LOGITS, TIMES = "spatial_features", "flow_features", "logits", "times_s"
SEQUENCE_LOGITS, PROBABILITIES = "sequence_logits", "probabilities"
SOME_FRAMES = 1 << 14
# What a crash may cost where the network is slow; a fast one is noted by the number of frames.
MOST_SECONDS_UNNOTED = 20.0


def columns_of(network: Any) -> dict[str, Column]:
    """What is kept of every frame."""
    streams = network.frames
    return {
        SPATIAL: Column(streams.spatial_features),
        MOTION: Column(streams.motion_features),
        LOGITS: Column(network.plan.behaviours),
        TIMES: Column(1, "float64"),
    }


def taken_up(network: Any, device: torch.device, file: FeatureFile) -> Begin:
    """Where frames must begin so that the next one is seen exactly as if the video had never been left."""
    plan = network.plan
    block = BLOCK_FRAMES.get(device.type, BLOCK_FRAMES_ELSEWHERE)  # where blocks begin decides the last bits
    first = max(0, (file.frames - plan.frames // 2 * plan.stride) // block * block)
    return Begin(first, np.array(file.column(TIMES)[:first, 0]))


class Gatherer:
    """Pushes the frames of one video through a network and keeps what comes out."""

    def __init__(self, placed: Placed, precision: str, file: FeatureFile, *, first: int) -> None:
        network: Any = placed.network
        self._stream = FeatureStream(network, placed.device, precision)
        self._file = file
        self._left_out = file.frames - first  # frames that are pushed only to be looked back at
        self._times = np.zeros(0)
        self._known = set(file.problems)
        self._split = network.frames.spatial_features
        self._noted_at = time.monotonic()

    def gather(self, video: StreamedVideo, progress: Callable[[int], object]) -> None:
        """All frames from where the file ends; `progress` is told how many became known."""
        for block in video.blocks():
            self._push(block, video, progress)
        self._keep(self._stream.finish(), video, progress)
        self._file.commit()

    def _push(self, block: FrameBlock, video: StreamedVideo, progress: Callable[[int], object]) -> None:
        self._times = np.concatenate([self._times, block.times])
        self._keep(self._stream.push(torch.from_numpy(block.pixels)), video, progress)
        if time.monotonic() - self._noted_at > MOST_SECONDS_UNNOTED:
            self._file.commit()
            self._noted_at = time.monotonic()

    def _keep(self, known: Streamed, video: StreamedVideo, progress: Callable[[int], object]) -> None:
        features, logits = known.features.cpu().numpy(), known.logits.cpu().numpy()
        times, self._times = self._times[: len(features)], self._times[len(features) :]
        skipped = min(self._left_out, len(features))
        self._left_out -= skipped
        spatial, motion = np.split(features[skipped:], [self._split], axis=1)
        rows = {SPATIAL: spatial, MOTION: motion, LOGITS: logits[skipped:], TIMES: times[skipped:, None]}
        new = [problem for problem in video.problems if problem not in self._known]
        self._known.update(new)
        self._file.append(rows, new)
        progress(len(features) - skipped)


class _SideBySide:
    """Features of both streams in one row, of as many frames as are asked for."""

    def __init__(self, *columns: NDArray[Any]) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, frames: slice) -> NDArray[np.float32]:
        return np.concatenate([column[frames] for column in self._columns], axis=1)


def ethogram_of(task: Any, network: Any, file: FeatureFile, name: str) -> tuple[Ethogram, NDArray[np.float32]]:
    """The answer for a whole video whose features are gathered, and its logits; both are mapped from beside them."""
    column = file.columns[LOGITS]
    features = _SideBySide(file.column(SPATIAL), file.column(MOTION))
    logits = file.beside(SEQUENCE_LOGITS, column, sequence_blocks(network, features))
    ethogram = Ethogram(
        behaviours=task.behaviours,
        probabilities=file.beside(PROBABILITIES, column, _likely(task, logits)),
        thresholds=_decided(task.score_thresholds, 0.5),
        min_bout_frames=_decided(task.min_bout_frames, 1),
        times_s=file.column(TIMES)[:, 0],
        name=name,
        problems=list(file.problems),
        exclusive=task.exclusive,
    )
    return ethogram, logits


def _likely(task: Any, logits: NDArray[np.float32]) -> Iterator[NDArray[np.float32]]:
    """Probabilities of all frames, some at a time: what is needed in between is several times as large."""
    for start in range(0, len(logits), SOME_FRAMES):
        yield task.probabilities(logits[start : start + SOME_FRAMES])


def _decided(value: Any, otherwise: float) -> Any:
    """What training chose; a model that was never validated has nothing to choose by."""
    return otherwise if isinstance(value, str) else value
