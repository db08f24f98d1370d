"""What the machine has, and where that is thin for training; nothing here needs torch."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from penstock.diagnosis.reading import Disk
from penstock.flow.budget import free_bytes, process_budget
from penstock.flow.explaining.plan_words import size_words
from penstock.flow.tuning.cores import cores
from penstock.wording import counted

FEWEST_CORES = 4
LEAST_GPU_BYTES = 6 * 2**30
MOST_INPUT = 4.0  # times the pixels that the network sees
QUESTION = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")


@dataclass(frozen=True)
class Gpu:
    """A device for networks; its memory is None where it shares that of the machine."""

    name: str
    bytes: int | None


@dataclass(frozen=True)
class Hardware:
    """The machine as this process may use it."""

    cores: int
    cores_of_machine: int
    memory_bytes: int
    free_bytes: int
    budget_bytes: int  # of all flows of this process
    gpus: tuple[Gpu, ...]
    disk: Disk

    def __str__(self) -> str:
        allowed = "" if self.cores == self.cores_of_machine else f" of {self.cores_of_machine}"
        gpus = ", ".join(_gpu_words(gpu) for gpu in self.gpus) or "no GPU"
        return (
            f"{self.cores}{allowed} {'core' if self.cores == 1 else 'cores'}, "
            f"{size_words(self.memory_bytes)} of memory ({size_words(self.free_bytes)} free), "
            f"{gpus}, {_disk_words(self.disk)}"
        )

    def thin(self, input_factor: float | None) -> tuple[str, ...]:
        """Where it is thin for the work; `input_factor` is how many times the network's pixels an image has."""
        found = []
        if self.cores < FEWEST_CORES:
            found.append(f"{counted(self.cores, 'core')}: decoding for a fast GPU takes {FEWEST_CORES} or more")
        if self.disk.kind == "spinning":
            found.append(
                "a spinning disk: shuffled reading seeks for every sample; shuffle(window=8) reads shards in a row"
            )
        for gpu in self.gpus:
            if gpu.bytes is not None and gpu.bytes < LEAST_GPU_BYTES:
                found.append(f"{gpu.name} has {size_words(gpu.bytes)} of memory: batches and networks must be small")
        if input_factor is not None and input_factor > MOST_INPUT:
            found.append(f"images have {input_factor:.0f} times the pixels that the network sees")
        return tuple(found)


def measured_hardware(disk: Disk) -> Hardware:
    """Look at the machine."""
    return Hardware(cores(), os.cpu_count() or 1, _memory_bytes(), free_bytes(), process_budget().limit, _gpus(), disk)


def _memory_bytes() -> int:
    """Of the machine, or what its control group allows."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return free_bytes()
    limit = Path("/sys/fs/cgroup/memory.max")
    try:
        words = limit.read_text().strip()
    except OSError:
        return total
    return min(total, int(words)) if words.isdigit() else total


def _gpus() -> tuple[Gpu, ...]:
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        return (Gpu("Apple GPU", None),)
    if shutil.which(QUESTION[0]) is None:
        return ()
    try:
        answer = subprocess.run(QUESTION, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ()  # a driver without a device
    return tuple(gpu for gpu in map(gpu_of, answer.splitlines()) if gpu is not None)


def gpu_of(line: str) -> Gpu | None:
    """A line of nvidia-smi, "Tesla T4, 15360" in MiB; None where it says something else."""
    name, _, memory = line.rpartition(",")
    return Gpu(name.strip(), int(memory) * 2**20) if name and memory.strip().isdigit() else None


def _gpu_words(gpu: Gpu) -> str:
    return gpu.name if gpu.bytes is None else f"{gpu.name} ({size_words(gpu.bytes)})"


def _disk_words(disk: Disk) -> str:
    kind = {"unknown": "a disk of unknown kind", "memory": "files in memory"}.get(disk.kind, f"a {disk.kind} disk")
    if disk.bytes_per_second is None:
        return kind
    reads = "" if disk.reads_per_second is None else f", {disk.reads_per_second:,.0f} random reads/s by one thread"
    many = "" if disk.many_reads_per_second is None else f", {disk.many_reads_per_second:,.0f} by sixteen"
    return f"{kind} ({size_words(disk.bytes_per_second)}/s in a row{reads}{many})"
