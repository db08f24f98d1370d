"""Functions that tests put into flows; importable by the worker processes that flows start."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

Sample = dict[str, Any]


def halved(image: Any) -> Any:
    return image[:16, :16] // 2


def with_noise(sample: Sample, rng: np.random.Generator) -> Sample:
    return {**sample, "noise": rng.integers(0, 1000, 3)}


def with_process(sample: Sample) -> Sample:
    return {**sample, "process": os.getpid()}


def with_large_text(sample: Sample) -> Sample:
    """Fields of another size in every sample: small ones, and some far above what goes through a socket at once."""
    length = 40_000 * (1 + sample["label"])
    return {**sample, "large": np.arange(length, dtype=np.float32) + sample["label"]}


def summed(batch: Sample) -> Sample:
    return {**batch, "image": batch["image"].astype(np.float64) * 1.5, "sum": batch["image"].sum(axis=(1, 2, 3))}


def dividing_by_zero(sample: Sample) -> Sample:
    if sample["label"] == 2:
        _inner(0)
    return sample


def _inner(number: int) -> float:
    return 1 / number


def leaving(sample: Sample) -> Sample:
    """Ends its process at the third sample of three."""
    if sample["label"] == 2:
        os._exit(7)
    return sample


def leaving_at_once(sample: Sample) -> Sample:
    os._exit(7)


def crashing_at_once(sample: Sample) -> Sample:
    ctypes.string_at(0)  # reads where nothing is mapped: SIGSEGV, in this thread
    return sample


class Noted:
    """Leaves a file for each process that called it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, sample: Sample) -> Sample:
        (self.folder / str(os.getpid())).touch()
        return sample


def holding_the_gil(sample: Sample) -> Sample:
    end = time.thread_time() + 0.002
    while time.thread_time() < end:
        pass
    return sample


def not_holding_the_gil(sample: Sample) -> Sample:
    time.sleep(0.002)
    return sample


class Stuck:
    """Never comes back from C at some samples, and lets no other thread of its process run; says so with a file."""

    def __init__(self, folder: Path, first: int) -> None:
        self.folder, self.first = folder, first

    def __call__(self, sample: Sample) -> Sample:
        if int(sample["key"].split("/")[1].split(".")[0]) >= self.first:
            (self.folder / f"stuck-{os.getpid()}").touch()
            ctypes.PyDLL(None).sleep(3600)
        return sample


class Gate:
    """Lets samples up to some number pass, and the others once a file exists; says who waits by files beside it."""

    def __init__(self, folder: Path, first: int) -> None:
        self.folder, self.first = folder, first

    def __call__(self, sample: Sample) -> Sample:
        if int(sample["key"].split("/")[1].split(".")[0]) >= self.first:
            (self.folder / f"waiting-{os.getpid()}").touch()
            while not (self.folder / "open").exists():
                time.sleep(0.005)
        return sample

    @property
    def waiting(self) -> list[int]:
        return [int(path.name.split("-")[1]) for path in self.folder.glob("waiting-*")]


class Crowd:
    """Counts how many threads are inside at once."""

    def __init__(self) -> None:
        self.inside = self.most = 0
        self._lock = threading.Lock()

    def __call__(self, sample: Sample) -> Sample:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        time.sleep(0.001)  # lets the others come in, if they may
        with self._lock:
            self.inside -= 1
        return sample
