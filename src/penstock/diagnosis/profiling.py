"""What each hop of a sample costs in one thread by itself, and among as many threads as there are cores.

Both make the same few samples, after one pass that opens files and fills caches. CPU time is that of the threads, and
time in which other programs had the cores is left out, so a busy machine gives about the same numbers as an idle one.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass

from penstock.diagnosis.gil_share import GilShare
from penstock.flow.making.limiting import limited
from penstock.flow.making.program import Program
from penstock.flow.making.rows import Rows
from penstock.flow.measuring.hops import Costs
from penstock.flow.measuring.sample_times import SampleTimes
from penstock.flow.tuning.allocating import parts_of_batch
from penstock.flow.tuning.cores import cores
from penstock.flow.workers.tasks import Task
from penstock.flow.workers.threads import Threads

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
