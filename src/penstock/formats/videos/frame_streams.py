"""Every frame of some videos, in order: decoded once, resized once, made ahead by all cores, in bounded memory.

supplies ─► tasks in order ─► threads ─► blocks in order ─► for video in FrameStream(...): for block in video.blocks()

The pixels are those that packing stores. A frame that does not decode keeps its place: the frame before it is given
again, and its number is among the problems of the video. Those at the end are left out, as packing does.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import Problem
from penstock.formats.videos.frame_memory import FrameMemory
from penstock.formats.videos.frame_supplies import Begin, MadeFrames, Supply, Task
from penstock.formats.videos.pictures import Pixels
from penstock.wording import counted

# What may be made ahead: some groups of 250 frames at 224 px are 37 MB each.
AHEAD_BYTES = 1 << 28
# Frames that are handed over at once.
BLOCK_FRAMES = 64


class FrameBlock(NamedTuple):
    """Frames that follow one another: the number of the first, when each is shown, and n×H×W×3 RGB."""

    first: int
    times: NDArray[np.float64]
    pixels: Pixels


class _Made(NamedTuple):
    frames: Future[list[MadeFrames]]
    bytes: int


class _Ended(NamedTuple):
    error: BaseException | None


class _Begun(NamedTuple):
    supply: Supply
    begin: Begin


class _Finished(NamedTuple):
    error: BaseException | None


_Item = _Made | _Ended | _Begun | _Finished


class _Gate:
    """How much may be under way: so many tasks, so many bytes, and always one task."""

    def __init__(self, tasks: int, most_bytes: int) -> None:
        self._tasks, self._bytes = tasks, most_bytes
        self._used_tasks, self._used_bytes = 0, 0
        self._changed = threading.Condition()
        self._is_closed = False

    def enter(self, size: int) -> bool:
        """Wait for room; False once the gate is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._has_room(size))
            self._used_tasks, self._used_bytes = self._used_tasks + 1, self._used_bytes + size
            return not self._is_closed

    def _has_room(self, size: int) -> bool:
        fits = self._used_tasks < self._tasks and self._used_bytes + size <= self._bytes
        return self._used_tasks == 0 or fits

    def leave(self, size: int) -> None:
        with self._changed:
            self._used_tasks, self._used_bytes = self._used_tasks - 1, self._used_bytes - size
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()


class FrameStream:
    """Videos one after another; while one ends, the next is already being decoded.

    A video that cannot be read raises from its own `blocks`; the stream goes on with the next one.
    """

    def __init__(self, videos: Iterable[Supply | tuple[Supply, Begin]], *, workers: int | None = None) -> None:
        self._videos = videos
        self._workers = workers or os.cpu_count() or 1
        self._memory = FrameMemory()

    def __iter__(self) -> Generator[StreamedVideo]:
        items: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        gate = _Gate(self._workers + 1, AHEAD_BYTES)  # more would only be more memory that is cold
        opened: list[Supply] = []
        own_threads: set[int] = set()
        pool = ThreadPoolExecutor(
            self._workers, "penstock-frames", initializer=lambda: own_threads.add(threading.get_ident())
        )
        given = (pool, items, gate, opened)
        puller = threading.Thread(target=self._pull, args=given, name="penstock-puller", daemon=True)
        puller.start()
        try:
            yield from _videos(items, gate)
        finally:
            gate.close()
            # A stream that was left unfinished goes when garbage is collected, in whichever thread that happens: one
            # of its own cannot wait for itself, nor for others that may wait for what it holds.
            if threading.get_ident() in own_threads | {puller.ident}:
                pool.shutdown(wait=False, cancel_futures=True)
            else:
                puller.join()
                pool.shutdown(cancel_futures=True)
                for supply in opened:
                    supply.close()

    def _pull(
        self, pool: ThreadPoolExecutor, items: queue.SimpleQueue[_Item], gate: _Gate, opened: list[Supply]
    ) -> None:
        """Hand out the tasks of all videos, in order."""
        problem: BaseException | None = None
        try:
            for given in self._videos:
                supply, begin = given if isinstance(given, tuple) else (given, Begin())
                opened.append(supply)
                items.put(_Begun(supply, begin))
                if not _hand_out(supply.tasks(begin, self._memory), pool, items, gate):
                    return
        except BaseException as error:  # noqa: BLE001 - it is raised again where the videos are taken
            problem = error
        finally:
            items.put(_Finished(problem))


def _hand_out(tasks: Iterator[Task], pool: ThreadPoolExecutor, items: queue.SimpleQueue[_Item], gate: _Gate) -> bool:
    """The tasks of one video; False once nobody takes them any more."""
    problem: BaseException | None = None
    try:
        for task in tasks:
            if not gate.enter(task.bytes):
                return False
            items.put(_Made(pool.submit(task.make), task.bytes))
    except BaseException as error:  # noqa: BLE001 - it is raised again where the blocks are taken
        problem = error
    items.put(_Ended(problem))
    return True


def _videos(items: queue.SimpleQueue[_Item], gate: _Gate) -> Iterator[StreamedVideo]:
    while True:
        item = items.get()
        if isinstance(item, _Begun):
            video = StreamedVideo(item.supply, item.begin, items, gate)
            yield video
            video.pass_over()
            item.supply.close()
        elif isinstance(item, _Finished):
            if item.error is not None:
                raise item.error
            return


class StreamedVideo:
    """One video of a stream: its blocks, and afterwards its problems and how many frames it has."""

    def __init__(self, supply: Supply, begin: Begin, items: queue.SimpleQueue[_Item], gate: _Gate) -> None:
        self.supply, self._items, self._gate = supply, items, gate
        self.problems: list[Problem] = []
        self.frame_count = begin.frame
        self._filled = _Filled(supply.file, begin.frame, self.problems)
        self._is_over = False

    @property
    def file(self) -> str:
        return self.supply.file

    def blocks(self) -> Iterator[FrameBlock]:
        """All frames from where the video was taken up, once."""
        for made in self._made():
            for block in self._filled.blocks(made):
                self.frame_count = block.first + len(block.times)
                yield block
        left_out = self._filled.left_out(self.supply.expected())
        self.problems += left_out or self.supply.remarks(self.frame_count)

    def _made(self) -> Iterator[MadeFrames]:
        while not self._is_over:
            item = self._items.get()
            if isinstance(item, _Made):
                try:
                    yield from item.frames.result()
                finally:
                    self._gate.leave(item.bytes)
                continue
            self._is_over = True
            if isinstance(item, (_Ended, _Finished)) and item.error is not None:
                raise item.error

    def pass_over(self) -> None:
        """Leave out what nobody took, so that the next video can come."""
        while not self._is_over:
            item = self._items.get()
            if isinstance(item, _Made):
                item.frames.cancel()
                self._gate.leave(item.bytes)
            else:
                self._is_over = True


class _Filled:
    """Puts frames in a row: trims what is not wanted, and fills places whose frame did not decode."""

    def __init__(self, file: str, start: int, problems: list[Problem]) -> None:
        self._file, self._start, self._problems = file, start, problems
        self._number = start  # of the next frame
        self._last: Pixels | None = None
        self._missing: list[float] = []  # times of frames that wait for a good one behind them
        self._reason = ""

    def blocks(self, made: MadeFrames) -> Iterator[FrameBlock]:
        if made.first is not None:
            self._number = made.first
        row = 0
        while row < len(made.times):
            if row in made.reasons:
                self._missing.append(float(made.times[row]))
                self._reason = f" ({made.reasons[row]})" if made.reasons[row] else ""
                row += 1
                continue
            stop = min([bad for bad in made.reasons if bad > row], default=len(made.times))
            stop = min(stop, row + BLOCK_FRAMES)
            yield from self._fill(made.pixels[row])
            yield from self._given(made.times[row:stop], made.pixels[row:stop])
            row = stop

    def _fill(self, following: Pixels) -> Iterator[FrameBlock]:
        """Places of missing frames get the frame before them; at the start of a video the one behind."""
        if not self._missing:
            return
        self._problems.append(self._problem(f"{self._words()} {_verb(self._missing)} not decode{self._reason}"))
        pixels = following if self._last is None else self._last
        times, self._missing = np.array(self._missing), []
        yield from self._given(times, np.repeat(pixels[None], len(times), axis=0))

    def _given(self, times: NDArray[np.float64], pixels: Pixels) -> Iterator[FrameBlock]:
        first, skipped = self._number, max(0, self._start - self._number)
        self._number += len(times)
        self._last = pixels[-1]
        if skipped < len(times):
            yield FrameBlock(first + skipped, times[skipped:], pixels[skipped:])

    def left_out(self, expected: int) -> list[Problem]:
        """Frames that did not decode and had no good one behind them, and those that the file is cut off before."""
        if not self._missing:
            return []
        what = f"the last {_counted(len(self._missing))} {_verb(self._missing)} not decode{self._reason}"
        lost = expected - self._number
        if lost > len(self._missing):
            what += f", and the file is cut off behind: {lost:,} of {counted(expected, 'frame', 'is')} missing"
        return [
            Problem(
                self._file, self._number, what, f"The first {counted(self._number, 'frame', 'is')} used", warning=True
            )
        ]

    def _words(self) -> str:
        last = self._number + len(self._missing) - 1
        return f"frame {last}" if last == self._number else f"frames {self._number} to {last}"

    def _problem(self, what: str) -> Problem:
        remedy = "The frame before stands in its place, and frames up to the next key frame may show remains of it"
        return Problem(self._file, self._number, what, remedy, warning=True)


def _verb(missing: list[float]) -> str:
    return "does" if len(missing) == 1 else "do"


def _counted(count: int) -> str:
    return "frame" if count == 1 else counted(count, "frame")
