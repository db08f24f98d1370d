"""The read hop alone, from the disk and from memory.

Bytes of mapped files come when they are touched, which is inside of decoding. Here every page of a sample is touched
when it is read, and the faults that needed the disk are counted, so that a slow disk is not taken for a slow decoder.
"""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock.diagnosis.disks import PAGE, READERS, files_of, forget
from penstock.flow.measuring.core_wait import CoreWait
from penstock.flow.measuring.lock_wait import lock_wait_seconds, locking
from penstock.flow.tuning.cores import cores
from penstock.samples import Store

MOST_SAMPLES = 512
STILL_GAINS = 0.7  # sixteen readers that give so much of sixteen times one: more would give more
MOSTLY_WAITING = 0.5
ONE_AT_A_TIME = 0.6  # readers of whom one computes, or could, so much of the time wait for it and not for a disk


@dataclass(frozen=True)
class ReadTimes:
    """What reading gave to some threads at once."""

    threads: int
    samples_per_second: float
    computing: float  # how many of them had something to compute, on average
    cpu_seconds: float  # of a sample
    wait_seconds: float  # of a sample, for anything but a core or the lock of the source
    bytes: float  # of a sample
    major_faults: float  # of a sample: pages that were fetched from the disk

    @property
    def is_waiting(self) -> bool:
        """Whether readers wait for the disk more than they compute."""
        mostly = self.wait_seconds > MOSTLY_WAITING * (self.cpu_seconds + self.wait_seconds)
        return mostly and self.computing < ONE_AT_A_TIME


@dataclass(frozen=True)
class ReadRun:
    """One reader, and many at once."""

    one: ReadTimes
    many: ReadTimes

    @property
    def most_per_second(self) -> float:
        """What reading allows however many read; no limit where more readers would give more, or only need cores."""
        scale = self.many.samples_per_second / max(self.one.samples_per_second, 1e-9)
        if scale > STILL_GAINS * self.many.threads or not self.many.is_waiting:
            return math.inf
        return max(self.many.samples_per_second, self.one.samples_per_second)


@dataclass(frozen=True)
class Reading:
    """Reading from memory, and from the disk where that could be measured."""

    warm: ReadRun
    cold: ReadRun | None
    files: tuple[Path, ...]


def measured_reading(source: Store, seconds: float) -> Reading:
    """Read some samples of a source again and again; first from the disk, where the system lets go of them."""
    few = np.unique(np.linspace(0, len(source) - 1, min(MOST_SAMPLES, len(source))).astype(np.int64))
    few = np.random.default_rng(0).permutation(few)
    base, indices, frames = source.images_at(few)
    files = files_of(base, indices[:: max(len(indices) // 64, 1)].tolist())
    cold = _cold(base, indices, frames, files, seconds / 2)
    warm = _run(base, indices, frames, seconds / 2)
    _give_back(base, indices)  # so that the disk can be measured by these files
    return Reading(warm, cold, tuple(files))


def _cold(base: Store, indices: Any, frames: int, files: list[Path], seconds: float) -> ReadRun | None:
    if not files or not _all_forgotten(base, indices, files):
        return None
    one = _read(base, indices[: len(indices) // 4 or 1], frames, 1, seconds / 2, again=False)
    if not _all_forgotten(base, indices, files):
        return None
    return ReadRun(one, _read(base, indices, frames, _readers(one), seconds / 2, again=False))


def _all_forgotten(base: Any, indices: Any, files: list[Path]) -> bool:
    _give_back(base, indices)
    forgotten = [forget(file) for file in files]
    return all(forgotten)


def _give_back(base: Any, indices: Any) -> None:
    """Pages that this process has mapped stay in memory, so a pack gives them back first."""
    base.give_back(indices)


def _run(base: Store, indices: Any, frames: int, seconds: float) -> ReadRun:
    _read(base, indices, frames, cores(), seconds / 4, again=False)
    one = _read(base, indices, frames, 1, seconds / 2, again=True)
    return ReadRun(one, _read(base, indices, frames, _readers(one), seconds / 2, again=True))


def _readers(one: ReadTimes) -> int:
    """Many, where one reader waits; where it computes, as many as there are cores."""
    return READERS if one.wait_seconds > one.cpu_seconds else max(cores(), 2)


def _read(base: Store, indices: Any, frames: int, threads: int, seconds: float, *, again: bool) -> ReadTimes:
    """Read these samples in some threads until the time is over; `again` and again, or at most once."""
    threads = min(threads, len(indices))
    faults, begin = major_faults(), time.perf_counter()
    parts = [indices[number::threads].tolist() for number in range(threads)]
    barrier = threading.Barrier(threads)
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(lambda part: _reader(base, part, begin + seconds, again, barrier), parts))
    took = max(one[6] for one in found) - min(one[5] for one in found)  # without the starting of threads
    count = max(sum(one[0] for one in found) / frames, 1e-9)
    cpu, wait, size, no_core = (sum(one[field] for one in found) / count for field in (1, 2, 3, 4))
    rate, faulted = count / max(took, 1e-9), major_faults() - faults
    return ReadTimes(threads, rate, (cpu + no_core) * rate, cpu, wait, size, faulted / count)


def _reader(
    base: Store, indices: list[int], deadline: float, again: bool, barrier: threading.Barrier
) -> tuple[int, float, float, int, float, float, float]:
    """What one thread read: samples, CPU seconds, seconds of waiting, bytes, seconds without a core; begin and end."""
    barrier.wait()
    count = size = 0
    with CoreWait() as core_wait:
        wall, cpu, no_core = time.perf_counter(), time.thread_time(), core_wait.seconds()
        locks = tuple(locking([base]))
        locked = lock_wait_seconds(locks)
        while not count or (again and time.perf_counter() < deadline):
            for index in indices:
                size += _bytes_of(base, index)
                count += 1
                if time.perf_counter() >= deadline:
                    break
        used, no_core = time.thread_time() - cpu, core_wait.seconds() - no_core
        end = time.perf_counter()
        waited = end - wall - used - no_core - (lock_wait_seconds(locks) - locked)
    return count, used, max(waited, 0.0), size, no_core, wall, end


def _bytes_of(base: Store, index: int) -> int:
    """Read a sample. One that cannot be read is the matter of the flow, which raises or replaces it."""
    try:
        return _touched(base.read(index).data)
    except OSError:
        return 0


def _touched(data: Any) -> int:
    """The bytes of what was read, after one of each page was looked at."""
    if isinstance(data, (bytes, bytearray)):
        return len(data)  # copied already
    if isinstance(data, (memoryview, np.ndarray)):
        view = np.frombuffer(data, np.uint8) if isinstance(data, memoryview) else data.reshape(-1).view(np.uint8)
        view[::PAGE].max(initial=0)
        return int(view.nbytes)
    return 0


def major_faults() -> int:
    """Pages that this process had to wait for until they came from a disk; 0 where the system does not count them."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt
