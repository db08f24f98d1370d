"""The disk that the data is on: its kind, what it reads in a second, and how to read from it and not from memory."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penstock.samples import Store
from penstock.storage.mapped import Mapped, resident_pages

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
