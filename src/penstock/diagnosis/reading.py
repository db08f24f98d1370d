"""The read hop alone, from the disk and from memory; and the disk that the data is on.

Bytes of mapped files come when they are touched, which is inside of decoding. Here every page of a sample is touched
when it is read, and the faults that needed the disk are counted, so that a slow disk is not taken for a slow decoder.
"""

from __future__ import annotations

import math
import mmap
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock.flow.measuring.waits import CoreWait, lock_wait_seconds, locking
from penstock.flow.tuning.cores import cores
from penstock.samples import Store
from penstock.storage.mapped import Mapped, resident_pages

# The disk that the data is on: its kind, what it reads in a second, and how to read from it and not from memory.


BLOCK = 1 << 20
PAGE = 4096
READERS = 16
MOST_FILES = 64
VIRTUAL = ("vd", "xvd", "loop")
NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "sshfs")


@dataclass(frozen=True)
class Disk:
    """A disk; rates are None where the data could not be read from it because it stays in memory."""

    kind: str  # spinning, solid state, virtual, network, memory or unknown
    bytes_per_second: float | None = None
    reads_per_second: float | None = None  # of 4 KB at random places, by one thread
    many_reads_per_second: float | None = None  # by sixteen


def files_of(source: Store, indices: Sequence[int]) -> list[Path]:
    """The files that these samples come from, as far as the source tells."""
    while not source.tells_origins and source.below:  # a cache, or what stands in for a source
        source = source.below[0]
    named = dict.fromkeys(source.origin(int(index)).file for index in indices)
    found = [Path(name) for name in named] or ([] if source.path is None else [source.path])
    return [file for file in found if file.is_file()][:MOST_FILES]


def disk_kind(path: Path) -> str:
    """Spinning, solid state, virtual, network or memory; unknown where the system does not tell."""
    system = _file_system(path)
    if system in NETWORK or system.startswith("fuse"):
        return "network"
    if system in ("tmpfs", "ramfs"):
        return "memory"
    try:
        device = path.stat().st_dev
        folder = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve(strict=True)
    except (OSError, AttributeError):  # not Linux, or a device without a block device behind it
        return "unknown"
    if folder.name.startswith(VIRTUAL):  # which say of themselves that they spin
        return "virtual"
    for place in (folder, folder.parent):  # of a partition, the disk has the answer
        try:
            return "spinning" if (place / "queue" / "rotational").read_text().strip() == "1" else "solid state"
        except OSError:
            continue
    return "unknown"


def _file_system(path: Path) -> str:
    """The type of the file system that a path is on."""
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    place = path.resolve().as_posix()
    mounts = [line.split()[1:3] for line in lines if len(line.split()) >= 3]
    above = [(len(folder), kind) for folder, kind in mounts if f"{place}/".startswith(f"{folder.rstrip('/')}/")]
    return max(above, default=(0, ""))[1]


def forget(file: Path) -> bool:
    """Ask the system to drop a file from memory; whether it did. What is written and not yet saved is not dropped."""
    if not hasattr(os, "posix_fadvise"):
        return False
    try:
        with file.open("rb") as opened:
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return not _is_in_memory(opened.fileno())
    except (OSError, ValueError):  # ValueError: an empty file cannot be mapped
        return False


def _is_in_memory(descriptor: int) -> bool:
    with mmap.mmap(descriptor, 0, prot=mmap.PROT_READ) as mapped:
        view = np.frombuffer(mapped, np.uint8)
        pages = resident_pages(
            Mapped(int(view.ctypes.data), len(view)), np.linspace(0, len(view) - 1, 16).astype(np.int64)
        )
        del view  # the mapping cannot be closed while it is looked at
        return pages is None or bool(pages.mean() > 0.5)


def measured_disk(files: Sequence[Path], seconds: float) -> Disk:
    """Read from the largest of these files, in a row and at random places."""
    if not files:
        return Disk("unknown")
    kind, file = disk_kind(files[0]), max(files, key=lambda one: one.stat().st_size)
    if not forget(file):
        return Disk(kind)
    bandwidth = _in_a_row(file, seconds / 3)
    one, many = _at_random(file, 1, seconds / 3), _at_random(file, READERS, seconds / 3)
    return Disk(kind, bandwidth, one, many)


def _in_a_row(file: Path, seconds: float) -> float:
    begin, size = time.perf_counter(), 0
    with file.open("rb", buffering=0) as opened:
        while time.perf_counter() - begin < seconds and (block := opened.read(BLOCK)):
            size += len(block)
    return size / max(time.perf_counter() - begin, 1e-9)


def _at_random(file: Path, readers: int, seconds: float) -> float | None:
    """4 KB reads a second; None where the file does not leave memory."""
    if not forget(file):
        return None
    places = np.random.default_rng(readers).permutation(max(file.stat().st_size // PAGE, 1))
    begin = time.perf_counter()
    with file.open("rb", buffering=0) as opened, ThreadPoolExecutor(readers) as pool:
        if hasattr(os, "POSIX_FADV_RANDOM"):
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        parts = [places[number::readers].tolist() for number in range(readers)]
        counts = list(pool.map(lambda part: _read_pages(opened.fileno(), part, begin + seconds), parts))
    return sum(counts) / max(time.perf_counter() - begin, 1e-9)


def _read_pages(descriptor: int, places: list[int], deadline: float) -> int:
    for count, place in enumerate(places):
        if time.perf_counter() >= deadline:
            return count
        os.pread(descriptor, PAGE, place * PAGE)
    return len(places)


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
