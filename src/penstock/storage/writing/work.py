"""The work of packing, cut into tasks: ranges of a source with random access, or runs of a part that streams.

Either way what comes out is `Prepared`: rows in order, each with the place where work goes on after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError
from penstock.samples import Raw, Segment, Store
from penstock.storage.blocks import Blocks
from penstock.storage.writing.options import GOP_FRAMES, SampleOptions
from penstock.storage.writing.parallel import ProcessPool, in_order, thread_pool
from penstock.storage.writing.preparing import BadSample, Preparation, Row, prepare_range, prepare_raws

# What one task may hold: enough to make handing it over cheap, little enough that many fit in memory.
TASK_BYTES = 4 << 20
TASK_SAMPLES = 64


class Place(NamedTuple):
    """Where work goes on: the part (0 for a source without parts) and the sample in it."""

    part: int
    sample: int


class Prepared(NamedTuple):
    outcome: Row | BadSample
    part: int
    sample: int
    after: Place

    @property
    def sample_count(self) -> int:
        """How many samples it stands for."""
        return self.outcome.count if isinstance(self.outcome, BadSample) else 1


def prepared_samples(
    source: Store, preparation: Preparation, sampled: NDArray[np.int64], start: Place, memory: Blocks
) -> Iterator[Prepared]:
    """The rows of a source with random access, from a place on."""
    options = preparation.options
    pace = _Pace()
    pool: ProcessPool | Executor
    if options.executor == "process":
        pool = ProcessPool(options.worker_count, prepare_range, (source, preparation))
    else:
        # One more than cores: one of them nearly always waits for the disk or the interpreter.
        pool = thread_pool(options.worker_count + 1)

    def submit(indices: range) -> Future[list[Any]]:
        if isinstance(pool, ProcessPool):
            return pool.submit(indices, sampled)
        return pool.submit(prepare_range, source, preparation, indices, sampled, memory.allocate)

    try:
        position = start.sample
        for outcomes in in_order(submit, pace.ranges(start.sample, len(source)), _window(options)):
            for outcome in outcomes:
                yield Prepared(outcome, 0, position, Place(0, position + 1))
                position += 1
            pace.learn(outcomes)
    finally:
        pool.shutdown(cancel_futures=True)


def prepared_parts(parts: Sequence[Segment], preparation: Preparation, start: Place) -> Iterator[Prepared]:
    """The rows of a source made of parts: read in order here, decoded and encoded by the workers."""
    options = preparation.options
    pool = thread_pool(options.worker_count)
    sent: list[_Run] = []

    def submit(run: _Run) -> Future[list[Any]]:
        sent.append(run)
        if run.bad is not None:
            left_out: Future[list[Any]] = Future()
            left_out.set_result([run.bad])
            return left_out
        return pool.submit(prepare_raws, parts[run.part], parts[run.part].key, preparation, run.raws)

    try:
        for outcomes in in_order(submit, _runs(parts, start, options), _window(options)):
            run = sent.pop(0)
            if run.bad is not None:
                yield Prepared(run.bad, run.part, 0, Place(run.part + 1, 0))
                continue
            last = run.raws[-1].index + 1
            # A group of pictures ends as a whole; bad frames come first, so its rows are told by their own numbers.
            together = options.codec == "h264"
            for raw, outcome in zip(run.raws, outcomes, strict=True):
                sample = int(outcome.values["frame"]) if together and isinstance(outcome, Row) else raw.index
                yield Prepared(outcome, run.part, sample, Place(run.part, last if together else sample + 1))
    finally:
        pool.shutdown(cancel_futures=True)


def _window(options: SampleOptions) -> int:
    # One task under way for each worker, and one more each that waits, so that nobody idles.
    return 2 * options.worker_count


class _Pace:
    """How many samples make a task: few when they are large."""

    def __init__(self) -> None:
        self._rows, self._bytes = 0, 0

    def learn(self, outcomes: list[Any]) -> None:
        self._rows += len(outcomes)
        self._bytes += sum(outcome.bytes for outcome in outcomes if isinstance(outcome, Row))

    def ranges(self, start: int, stop: int) -> Iterator[range]:
        while start < stop:
            count = min(self._count(), stop - start)
            yield range(start, start + count)
            start += count

    def _count(self) -> int:
        if self._rows == 0:
            return 4
        return max(1, min(TASK_SAMPLES, TASK_BYTES * self._rows // max(self._bytes, 1)))


class _Run(NamedTuple):
    """Consecutive samples of a part, or what is left out of it."""

    part: int
    raws: list[Raw]
    bad: BadSample | None = None


def _runs(parts: Sequence[Segment], start: Place, options: SampleOptions) -> Iterator[_Run]:
    """All parts from a place on; one that cannot be read to its end is left out from there when the user says so."""
    for number in range(start.part, len(parts)):
        part = parts[number]
        following = start.sample if number == start.part else 0
        try:
            for raws in _taken(part.stream(following), options.codec == "h264"):
                following = raws[-1].index + 1
                yield _Run(number, raws)
        except DataError as error:
            if options.on_bad_sample != "skip" or not error.is_unreadable:
                raise
            yield _Run(number, [], _rest_of(part, following, error.reasons))


def _rest_of(part: Segment, first: int, reason: str) -> BadSample:
    """All samples of a part from one on, as far as it is known how many there are."""
    if not part.expected:
        return BadSample(part.key, reason)
    last = max(first, part.expected - 1)
    name = f"{part.key}#{first}" + (f" to #{last}" if last > first else "")
    return BadSample(name, reason, count=last - first + 1)


def _taken(stream: Iterator[Raw], groups_of_pictures: bool) -> Iterator[list[Raw]]:
    """A stream in handy pieces; exactly one group of pictures each where that is the codec."""
    raws: list[Raw] = []
    held = 0
    try:
        for raw in stream:
            raws.append(raw)
            held += _held_bytes(raw.data)
            full = len(raws) == GOP_FRAMES if groups_of_pictures else held >= TASK_BYTES or len(raws) == TASK_SAMPLES
            if full:
                yield raws
                raws, held = [], 0
    except DataError:
        if raws:
            yield raws
        raise
    if raws:
        yield raws


def _held_bytes(data: Any) -> int:
    """About how much memory an undecoded sample takes."""
    if hasattr(data, "nbytes"):
        return int(data.nbytes)
    if isinstance(data, bytes | bytearray | memoryview):
        return len(data)
    width, height = getattr(data, "width", 0), getattr(data, "height", 0)
    return int(width) * int(height) * 3 // 2 or 65536
