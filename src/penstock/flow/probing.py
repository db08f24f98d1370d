"""Do threads help here? The same few samples in one thread and in two at once; what holds the GIL does not gain."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import NamedTuple

from penstock.flow.program import Program
from penstock.flow.rows import Rows

ONE_THREAD_SECONDS = 0.03  # together with twice as much in two threads: about a tenth of a second
MOST_SAMPLES = 256


class Probed(NamedTuple):
    """What was measured: seconds a sample in one thread, and how much of two threads two threads are worth."""

    samples: int
    sample_seconds: float
    efficiency: float


def probe(program: Program) -> Probed | None:
    """Measure; None where there is nothing to measure. What the samples raise is raised."""
    length = program.order.length
    most = min(MOST_SAMPLES, program.batch.size, MOST_SAMPLES if length is None else length)
    if not most:
        return None
    _make(program, 1)  # the first one opens files and imports modules
    one = _timed(program, 1, threads=1)
    samples = max(min(int(ONE_THREAD_SECONDS / max(one, 1e-6)), most), 1)
    if samples > 1:
        one = _timed(program, samples, threads=1)
    two = _timed(program, samples, threads=2)
    return Probed(samples, one / samples, min(one / max(two, 1e-9), 1.0))


def _make(program: Program, samples: int) -> None:
    """What a worker does with the first samples of an epoch."""
    if program.makes_whole_batches:
        program.whole(0, 0, 0, samples)
    else:
        program.fill(0, 0, samples, Rows.fresh(program.layout, samples).arrays)


def _timed(program: Program, samples: int, threads: int) -> float:
    """Seconds until the last of these threads has made the samples, without the time that no core was free."""
    seconds: list[float] = []
    errors: list[BaseException] = []
    start_line = threading.Barrier(threads)

    def work() -> None:
        try:
            start_line.wait()
            start, delayed = time.perf_counter(), _delayed_seconds()
            _make(program, samples)
            seconds.append(time.perf_counter() - start - (_delayed_seconds() - delayed))
        except BaseException as error:  # noqa: BLE001 - raised below, where it is waited for
            errors.append(error)

    workers = [threading.Thread(target=work, name="penstock-probe", daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]
    return max(seconds)


def _delayed_seconds() -> float:
    """How long this thread could have run and had no core: other programs must not look like a held GIL."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_bytes().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return 0.0  # not told here
