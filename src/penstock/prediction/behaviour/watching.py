"""One device that looks at videos, one after another, while the frames of the next are already being decoded."""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any, Generic, NamedTuple, TypeVar

from penstock.codecs.headers import UnreadableImage
from penstock.errors import DataError, Problem
from penstock.formats.videos.frame_streams import FrameStream, StreamedVideo
from penstock.formats.videos.frame_supplies import Begin, Supply
from penstock.prediction.behaviour.gathering import Gatherer, columns_of, ethogram_of, taken_up
from penstock.prediction.behaviour.keeping import Keeper
from penstock.prediction.behaviour.options import EthogramOptions
from penstock.prediction.behaviour.progress import Progress
from penstock.prediction.behaviour.video_jobs import VideoJob
from penstock.prediction.devices import Placed
from penstock.results.feature_files import FeatureFile
from penstock.tasks.behaviour.sizes import SIZES
from penstock.tasks.inference.folding import made_to_answer
from penstock.tasks.precisions import FULL

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
