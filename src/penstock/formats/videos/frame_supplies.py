"""Where the frames of one video come from when all of them are wanted in order: as tasks for threads.

| supply       | of                                   | tasks are                                          |
|--------------|--------------------------------------|----------------------------------------------------|
| GroupedVideo | files that can be cut (own module)   | groups of packets, decoded each on its own         |
| PassedVideo  | all other video files                | frames of one pass, made RGB                       |
| NumberedVideo| folders of frames, HDF5 of frames    | some frames by number                              |
| StoredVideo  | a video in a pack or another Source | some samples                                       |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.decoding import DecodingPass, Lost
from penstock.codecs.headers import UnreadableImage
from penstock.errors import DataError, HopError, PackError, Problem
from penstock.formats.videos.frame_memory import FrameMemory
from penstock.formats.videos.framing import Framing, framed_pixels
from penstock.formats.videos.pictures import Footage, Picture, Pixels
from penstock.formats.videos.video_files import VideoFile
from penstock.samples import Store

# Frames of one task where tasks can have any size: enough that handing it over costs nothing beside the work.
TASK_FRAMES = 16
LEFT_OUT = "it was left out of the data"


class Begin(NamedTuple):
    """Where a video is taken up again: the first frame that is wanted, and when those before it are shown."""

    frame: int = 0
    times: NDArray[np.float64] = np.zeros(0)


class MadeFrames(NamedTuple):
    """Frames that were made together: when each is shown, its pixels, and why some have none, by row."""

    times: NDArray[np.float64]
    pixels: Pixels
    reasons: dict[int, str]
    first: int | None = None  # number of the first frame; None where it follows the frames before


class Task(NamedTuple):
    """Some frames to be made by any thread, and the memory that they will take."""

    make: Callable[[], list[MadeFrames]]
    bytes: int


class Supply(Protocol):
    """All frames of one video, in order."""

    @property
    def file(self) -> str: ...
    def expected(self) -> int: ...
    def tasks(self, begin: Begin, memory: FrameMemory) -> Iterator[Task]: ...
    def remarks(self, frame_count: int) -> list[Problem]:
        """What was noticed about the video as a whole, once its tasks have ended."""
        ...

    def close(self) -> None:
        """Let go of what is open; no task is running any more."""
        ...


class NumberedVideo:
    """Frames that are found by number."""

    def __init__(self, footage: Footage) -> None:
        self._footage = footage

    @property
    def file(self) -> str:
        return self._footage.file

    def expected(self) -> int:
        return self._footage.expected()

    def tasks(self, begin: Begin, memory: FrameMemory) -> Iterator[Task]:
        count = self.expected()
        if not count:
            raise DataError([Problem(self.file, None, "it holds no frame", "Leave it out, or write it again")])
        for start in range(begin.frame, count, TASK_FRAMES):
            numbers = range(start, min(start + TASK_FRAMES, count))
            yield Task(partial(self._made, numbers, memory), 0)

    def _made(self, numbers: range, memory: FrameMemory) -> list[MadeFrames]:
        rows = Rows(memory)
        for number in numbers:
            try:
                rows.add(np.nan, self._footage.rgb(self._footage.picture(number)))
            except DataError as error:
                rows.miss(np.nan, error.problems[0].what)
        return [rows.made(numbers[0])]

    def remarks(self, frame_count: int) -> list[Problem]:
        return []

    def close(self) -> None:
        return


class StoredVideo:
    """Samples of a source, each a frame; brought to a framing where they are not yet.

    `is_stored` says which rows show their own frame; the others are frames that the data do not have.
    """

    def __init__(
        self,
        source: Store,
        indices: NDArray[np.int64],
        file: str,
        framing: Framing,
        is_stored: NDArray[np.bool_] | None = None,
    ) -> None:
        self._source, self._indices, self._framing = source, indices, framing
        self._is_stored = np.ones(len(indices), bool) if is_stored is None else is_stored
        self.file = file
        image = source.schema.image
        self._image = "image" if image is None else image.name

    def expected(self) -> int:
        return len(self._indices)

    def tasks(self, begin: Begin, memory: FrameMemory) -> Iterator[Task]:
        for start in range(begin.frame, len(self._indices), TASK_FRAMES):
            numbers = range(start, min(start + TASK_FRAMES, len(self._indices)))
            yield Task(partial(self._made, numbers, memory), 0)

    def _made(self, numbers: range, memory: FrameMemory) -> list[MadeFrames]:
        rows = Rows(memory)
        for number in numbers:
            index, time_seconds = int(self._indices[number]), np.nan
            if not self._is_stored[number]:
                rows.miss(self._time_between(number), LEFT_OUT)
                continue
            try:
                time_seconds = self._time(number)
                pixels = self._source.decode(self._source.read(index))[self._image]
                rows.add(time_seconds, framed_pixels(pixels, self._framing))
            except (OSError, UnreadableImage, PackError, DataError, HopError, ValueError) as error:
                rows.miss(time_seconds, str(error))
        return [rows.made(numbers[0])]

    def _time(self, number: int) -> float:
        return float(self._source.annotations(int(self._indices[number])).get("time", np.nan))

    def _time_between(self, number: int) -> float:
        """When a missing frame was shown, by the two stored frames that are next to it."""
        stored = np.flatnonzero(self._is_stored)
        if len(stored) < 2:
            return self._time(number)
        at = int(np.clip(np.searchsorted(stored, number), 1, len(stored) - 1))
        one, other = int(stored[at - 1]), int(stored[at])
        first, last = self._time(one), self._time(other)
        return max(0.0, first + (last - first) * (number - one) / (other - one))

    def remarks(self, frame_count: int) -> list[Problem]:
        return []

    def close(self) -> None:
        return


class PassedVideo:
    """A video file that is decoded from its start by FFmpeg's threads; ours make RGB of its frames."""

    def __init__(self, footage: VideoFile) -> None:
        self._footage = footage
        self._decoding: DecodingPass | None = None
        self._problems: list[Problem] = []

    @property
    def file(self) -> str:
        return self._footage.file

    def expected(self) -> int:
        return self._footage.expected()

    def tasks(self, begin: Begin, memory: FrameMemory) -> Iterator[Task]:
        self._decoding = DecodingPass(self._footage.path)
        pictures = (picture for picture, _ in self._footage.timed_pass(self._decoding, begin.frame))
        number = begin.frame
        while some := self._taken(pictures, first=number):
            yield Task(partial(self._made, number, some, memory), 0)
            number += len(some)

    def _taken(self, pictures: Iterator[Picture], first: int) -> list[Picture]:
        """The next frames. Those before damage are good; behind it nobody knows which frame is which."""
        some: list[Picture] = []
        try:
            some.extend(islice(pictures, TASK_FRAMES))
        except DataError as error:
            if not first and not some:
                raise
            self._problems += error.problems
        return some

    def _made(self, first: int, pictures: list[Picture], memory: FrameMemory) -> list[MadeFrames]:
        rows = Rows(memory)
        for picture in pictures:
            if isinstance(picture.pixels, Lost):
                rows.miss(picture.time_seconds, "")
            else:
                rows.add(picture.time_seconds, self._footage.rgb(picture))
        return [rows.made(first)]

    def remarks(self, frame_count: int) -> list[Problem]:
        damaged = 0 if self._decoding is None else self._decoding.damaged_packets
        return self._problems or self._footage.missing_end(frame_count, damaged)

    def close(self) -> None:
        return


class Rows:
    """Frames as they are made, with gaps where one could not be."""

    def __init__(self, memory: FrameMemory) -> None:
        self._memory = memory
        self._times: list[float] = []
        self._pixels: list[Pixels | None] = []
        self._reasons: dict[int, str] = {}

    def add(self, time_seconds: float, pixels: Pixels) -> None:
        self._times.append(time_seconds)
        self._pixels.append(pixels)

    def miss(self, time_seconds: float, reason: str) -> None:
        self._reasons[len(self._times)] = reason
        self._times.append(time_seconds)
        self._pixels.append(None)

    def made(self, first: int | None) -> MadeFrames:
        """All of them; rows without pixels hold anything, and are never given to anybody."""
        shape = next((pixels.shape for pixels in self._pixels if pixels is not None), (1, 1, 3))
        block = self._memory.take((len(self._pixels), *shape))
        for row, pixels in enumerate(self._pixels):
            if pixels is not None:
                block[row] = pixels
        return MadeFrames(np.array(self._times), block, self._reasons, first)
