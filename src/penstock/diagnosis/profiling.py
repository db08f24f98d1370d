"""What each hop of a sample costs in one thread and among many, and who holds the GIL.

Both make the same few samples, after one pass that opens files and fills caches. CPU time is that of the threads, and
time in which other programs had the cores is left out, so a busy machine gives about the same numbers as an idle one.
"""

from __future__ import annotations

import threading
import time
from contextlib import closing
from dataclasses import dataclass
from types import TracebackType

from penstock.flow.making.layout import Rows
from penstock.flow.making.limiting import limited
from penstock.flow.making.program import Program
from penstock.flow.measuring.metrics import Costs
from penstock.flow.measuring.sample_times import SampleTimes
from penstock.flow.measuring.waits import CoreWait
from penstock.flow.tuning.allocating import parts_of_batch
from penstock.flow.tuning.cores import cores
from penstock.flow.workers.executors import Task, Threads

# For which part of the time the GIL is held by others: a thread wakes every other millisecond, and asks for it.
#
# Who gets it at once finds it free. Who does not waits until its holder lets go of it, at the latest after the switch
# interval of Python (5 ms). An answer stands for the time since the last one: who has to wait asks less often, and by
# their number alone the GIL would seem free. Time without a core is left out, so a busy machine gives the same
# answer.


INTERVAL_SECONDS = 0.002
FEWEST_QUESTIONS = 15
NOTABLE_SECONDS = 0.0003  # timers are late by a tenth of a millisecond; shorter sections are not seen


class GilShare:
    """Asks for the GIL while its block runs; `share` is the part of the time that it was not to be had."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._asked = 0
        self._seconds = self._held_seconds = 0.0
        self._thread = threading.Thread(target=self._ask, name="penstock-gil", daemon=True)

    def __enter__(self) -> GilShare:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def share(self) -> float:
        """0 where it could not ask often enough to know."""
        return self._held_seconds / self._seconds if self.is_known else 0.0

    @property
    def is_known(self) -> bool:
        return self._asked >= FEWEST_QUESTIONS

    def _ask(self) -> None:
        with CoreWait() as core_wait:
            while not self._stop.is_set():
                no_core, begin = core_wait.seconds(), time.perf_counter()
                time.sleep(INTERVAL_SECONDS)
                self._note(max(time.perf_counter() - begin - (core_wait.seconds() - no_core), 0.0))

    def _note(self, taken: float) -> None:
        """One answer, and the seconds that it took to get it."""
        self._asked += 1
        self._seconds += taken
        self._held_seconds += taken if taken - INTERVAL_SECONDS > NOTABLE_SECONDS else 0.0


MOST_SAMPLES = 256
GIL_SECONDS = 2.0  # at most, until the GIL was asked for often enough


@dataclass(frozen=True)
class Profile:
    """The costs of a sample: alone, and in a crowd of threads."""

    alone: SampleTimes
    crowded: SampleTimes
    gil_share: float = 0.0  # of the time that a thread has a sample in hand, alone
    has_lock: bool = False  # whether the source lets one thread read at a time

    def core_share(self, cores: int) -> float:
        """What other programs leave of the cores; threads beyond their number wait for one another."""
        return min(self.crowded.core_share * max(self.crowded.threads / cores, 1.0), 1.0)

    @property
    def held_seconds(self) -> float:
        """What a sample holds the GIL."""
        return self.gil_share * (self.alone.cpu_seconds + self.alone.wait_seconds)

    @property
    def locked_seconds(self) -> float:
        """What a sample holds the lock of its source."""
        read = self.alone.hops["read"]
        return read.cpu_seconds + read.wait_seconds if self.has_lock else 0.0


def profile(program: Program, seconds: float) -> Profile:
    """Measure a program, for about so many seconds in all."""
    for leaf in program.leaves:
        leaf.source.prepare()
    program = limited(program)
    threads = max(cores(), 2)
    spans = _spans(program, threads, seconds / 4)
    _made(program, spans, threads, 0.0)
    with GilShare() as gil:
        alone = _made(program, spans, 1, seconds / 3)
        begin = time.perf_counter()
        while not gil.is_known and time.perf_counter() - begin < GIL_SECONDS:
            _made(program, spans[:1], 1, 0.0)
    crowded = _made(program, spans, threads, seconds / 3)
    return Profile(alone, crowded, gil.share, has_lock=bool(program.locking_sources))


def _spans(program: Program, threads: int, seconds: float) -> list[tuple[int, int]]:
    """Ranges of positions that take one thread about so many seconds: each is a task."""
    most = max(MOST_SAMPLES, program.batch.size * threads)
    length = most if program.order.length is None else min(program.order.length, most)
    if program.makes_whole_batches:
        rows = min(program.batch.size, length)
        return [(0, rows)] * threads
    one = seconds_of_sample(program)
    rows = -(-program.batch.size // parts_of_batch(program.batch.size, one))  # of a task, as a running flow has them
    count = min(max(int(seconds / one), 2 * threads, rows * threads), length)
    return [(start, min(start + rows, count)) for start in range(0, count, rows)]


def seconds_of_sample(program: Program) -> float:
    """What one sample takes one thread, about; the first one opens files, and does not count."""
    _made(program, [(0, 1)], 1, 0.0)
    begin = time.perf_counter()
    _made(program, [(0, 1)], 1, 0.0)
    return max(time.perf_counter() - begin, 1e-5)


def _made(program: Program, spans: list[tuple[int, int]], threads: int, seconds: float) -> SampleTimes:
    """All spans at least once, and again until the time is over."""
    total, samples, under_way, number = Costs(), 0, 0, 0
    rows = max(stop - start for start, stop in spans)
    arrays = [Rows.fresh(program.layout, rows).arrays for _ in range(2 * threads)]  # what is in them nobody reads
    deadline = time.perf_counter() + seconds
    with closing(Threads(program, threads)) as executor:
        while True:
            is_over = number >= len(spans) and time.perf_counter() >= deadline
            if is_over and not under_way:
                return SampleTimes.of(total, samples, threads)
            if not is_over and under_way < len(arrays):
                start, stop = spans[number % len(spans)]
                executor.submit(Task(number, 0, 0, start, stop, 0, 0), arrays[number % len(arrays)])
                number, under_way = number + 1, under_way + 1
                continue
            done = executor.next_done()
            under_way -= 1
            if done.error is not None:
                raise done.error
            assert done.made is not None
            total.add(done.made.costs)
            samples += done.task.stop - done.task.start
