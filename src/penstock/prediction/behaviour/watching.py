"""Videos through the networks: one device, one video after another, frames pushed as they come."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from penstock.codecs.headers import UnreadableImage
from penstock.errors import DataError, Problem
from penstock.formats.videos.frame_streams import FrameBlock, FrameStream, StreamedVideo
from penstock.formats.videos.frame_supplies import Begin, Supply
from penstock.prediction.behaviour.ethogram_output import Keeper
from penstock.prediction.behaviour.options import EthogramOptions
from penstock.prediction.behaviour.video_jobs import VideoJob
from penstock.prediction.devices import Placed
from penstock.results.ethograms import Ethogram
from penstock.results.feature_files import Column, FeatureFile
from penstock.tasks.behaviour.settings import SIZES
from penstock.tasks.behaviour.streaming import (
    BLOCK_FRAMES,
    BLOCK_FRAMES_ELSEWHERE,
    FeatureStream,
    Streamed,
    sequence_blocks,
)
from penstock.tasks.checkpoints import FULL
from penstock.tasks.inference.folding import made_to_answer

# One video through the networks: frames are pushed as they come, features and logits are kept as they come.
#
# frames ─► FeatureStream ─► FeatureFile (grows on the disk) ─► sequence network ─► Ethogram


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


# How far the videos are, for people who wait.


class Progress:
    """A bar for each video that is being looked at; without a console it says nothing."""

    def __init__(self, bars: Any = None) -> None:
        self._bars = bars
        self._videos = None if bars is None else bars.add_task("videos", total=None)

    def begin(self, name: str, frames: int, done: int) -> Any:
        """A video of about so many frames, of which some are done."""
        return None if self._bars is None else self._bars.add_task(name, total=frames or None, completed=done)

    def advance(self, bar: Any, frames: int) -> None:
        if self._bars is not None:
            self._bars.advance(bar, frames)

    def end(self, bar: Any) -> None:
        if self._bars is not None:
            self._bars.remove_task(bar)
            self._bars.advance(self._videos)

    def pass_over(self) -> None:
        """A video that was done before."""
        if self._bars is not None:
            self._bars.advance(self._videos)

    def expect(self, videos: int) -> None:
        if self._bars is not None:
            self._bars.update(self._videos, total=videos)


@contextmanager
def shown(videos: int, wanted: bool) -> Iterator[Progress]:
    """Bars on standard error while the block runs, where they are wanted."""
    if not wanted:
        yield Progress()
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True)) as bars:
        progress = Progress(bars)
        progress.expect(videos)
        yield progress


Item = TypeVar("Item")


class TakingTurns(Generic[Item]):
    """Items that several threads take, each once."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = iter(items)
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        with self._lock:
            return next(self._items)


class _Opened(NamedTuple):
    """A video whose frames are on their way, and the file that its features grow in."""

    job: VideoJob
    file: FeatureFile
    begin: Begin
    made_by: str


class Watcher:
    """A network on a device; `watch` takes videos as long as there are any."""

    def __init__(
        self,
        task: Any,
        placed: Placed,
        keeper: Keeper,
        options: EthogramOptions,
        identity: str,
        precision: str,
        threads: int | None,
        progress: Progress,
    ) -> None:
        self._task, self._keeper, self._options = task, keeper, options
        self._placed = Placed(made_to_answer(placed.network, placed.device, short=precision != FULL), placed.device)
        self._threads, self._progress = threads, progress
        self._precision = precision
        self._identity = f"{identity} {placed.device.type} {self._precision}"
        self._opened: deque[_Opened] = deque()

    def watch(self, jobs: Iterable[VideoJob]) -> list[Problem]:
        """Look at videos; gives the problems of those that cannot be read."""
        failures: list[Problem] = []
        try:
            with closing(iter(FrameStream(self._begun(jobs), workers=self._threads))) as videos:
                for video in videos:
                    failures += self._one(video, self._opened.popleft())
        finally:
            for left in self._opened:
                left.file.close()
        return failures

    def _begun(self, jobs: Iterable[VideoJob]) -> Iterator[tuple[Supply, Begin]]:
        """Open the next video, where it was left; those that are done are passed over."""
        for job in jobs:
            made_by = hashlib.sha256(f"{self._identity} {job.state}".encode()).hexdigest()
            if not self._options.fresh and self._keeper.has(job.name, made_by):
                self._progress.pass_over()
                continue
            columns = columns_of(self._placed.network)
            target = self._keeper.target(job.name)
            file = FeatureFile(target, columns, {"made_by": made_by}, fresh=self._options.fresh)
            begin = taken_up(self._placed.network, self._placed.device, file)
            self._opened.append(_Opened(job, file, begin, made_by))
            yield job.supply(), begin

    def _one(self, video: StreamedVideo, opened: _Opened) -> list[Problem]:
        job, file = opened.job, opened.file
        bar = self._progress.begin(job.name, _expected(video), file.frames)
        try:
            gatherer = Gatherer(self._placed, self._precision, file, first=opened.begin.frame)
            gatherer.gather(video, lambda frames: self._progress.advance(bar, frames))
        except (DataError, UnreadableImage) as error:
            problems = _problems(error, job)
            self._keeper.fail(job.name, problems)
            file.discard()
            return problems
        except BaseException:
            file.close()  # what is known stays for the next time
            raise
        finally:
            self._progress.end(bar)
        self._save(opened)
        file.discard()
        return []

    def _save(self, opened: _Opened) -> None:
        ethogram, logits = ethogram_of(self._task, self._placed.network, opened.file, opened.job.name)
        self._keeper.save(ethogram, opened.made_by, logits, opened.file, SIZES[self._task.size].backbone)


def _expected(video: StreamedVideo) -> int:
    try:
        return video.supply.expected()
    except DataError:  # its blocks say what is wrong
        return 0


def _problems(error: DataError | UnreadableImage, job: VideoJob) -> list[Problem]:
    if isinstance(error, DataError):
        return list(error.problems)
    return [Problem(job.file, None, str(error), "Re-encode the video, or leave it out", unreadable=True)]
