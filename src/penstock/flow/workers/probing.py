"""Do threads help here? The same few samples in one thread and in two at once; what holds the GIL does not gain."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

from penstock.flow.making.program import Program
from penstock.flow.making.rows import Rows
from penstock.flow.measuring.core_wait import CoreWait

ONE_THREAD_SECONDS = 0.03  # together with twice as much in two threads: about a tenth of a second
MOST_SAMPLES = 256


class Probed(NamedTuple):
    """What was measured: seconds a sample in one thread, and how much of two threads two threads are worth."""

    samples: int
    sample_seconds: float
    efficiency: float


class Spent(NamedTuple):
    """The time of a thread, without that in which it had work and no core: other programs are no held GIL."""

    seconds: float
    cpu_seconds: float

    @property
    def blocked_seconds(self) -> float:
        return max(self.seconds - self.cpu_seconds, 0.0)


def probe(program: Program) -> Probed | None:
    """Measure; None where there is nothing to measure. What the samples raise is raised.

    A thread that waits for the GIL is blocked. Where two threads are blocked no longer than one is by itself (disks,
    networks), nothing is lost. On an idle machine this is the rate of two, divided by twice the rate of one.
    """
    length = program.order.length
    most = min(MOST_SAMPLES, program.batch.size, MOST_SAMPLES if length is None else length)
    if not most:
        return None
    _make(program, 1)  # the first one opens files and imports modules
    one = min(_spent(program, 1, threads=1), _spent(program, 1, threads=1))
    samples = max(min(int(ONE_THREAD_SECONDS / max(one.seconds, 1e-6)), most), 1)
    if samples > 1:
        one = _spent(program, samples, threads=1)
    two = _spent(program, samples, threads=2)
    efficiency = (two.cpu_seconds + one.blocked_seconds) / max(two.seconds, 1e-9)
    return Probed(samples, one.seconds / samples, min(efficiency, 1.0))


def _make(program: Program, samples: int) -> None:
    """What a worker does with the first samples of an epoch."""
    if program.makes_whole_batches:
        program.whole(0, 0, 0, samples)
    else:
        program.fill(0, 0, samples, Rows.fresh(program.layout, samples).arrays)


def _spent(program: Program, samples: int, threads: int) -> Spent:
    """What the slower one of these threads took for the samples, with the CPU time of one of them on average."""
    found: list[Spent] = []
    errors: list[BaseException] = []
    starts: list[float] = []
    # One start for all: who has to wait for the GIL before the first line of its own is blocked already.
    starting_line = threading.Barrier(threads, action=lambda: starts.append(time.perf_counter()))

    def work() -> None:
        try:
            with CoreWait() as core_wait:
                delayed, cpu = core_wait.seconds(), time.thread_time()
                starting_line.wait()
                _make(program, samples)
                seconds = time.perf_counter() - starts[0] - (core_wait.seconds() - delayed)
                found.append(Spent(seconds, time.thread_time() - cpu))
        except BaseException as error:  # noqa: BLE001 - raised below, where it is waited for
            errors.append(error)

    workers = [threading.Thread(target=work, name="penstock-probe", daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]
    return Spent(max(one.seconds for one in found), sum(one.cpu_seconds for one in found) / threads)
