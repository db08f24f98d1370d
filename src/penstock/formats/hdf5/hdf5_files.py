"""One HDF5 file: a handle for each thread and process, h5py's lock, and why a file cannot be opened."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from penstock.errors import DataError, Problem
from penstock.formats.hdf5.hdf5_doors import open_hdf5_file

Read = TypeVar("Read")

# h5py's words when the writer of a file did not close it.
_LEFT_OPEN = ("already open for write", "consistency flag", "h5clear")
# Decoded chunks that HDF5 keeps for each dataset: neighbours in a compressed chunk are then decoded once.
CHUNK_CACHE_BYTES = 16 << 20


class LockWait:
    """Seconds that each thread has waited for h5py's lock: only one thread of a process is inside HDF5 at a time."""

    def __init__(self) -> None:
        self._local = threading.local()

    def seconds(self) -> float:
        """Of the calling thread, since it began."""
        return float(getattr(self._local, "seconds", 0.0))

    def add(self, seconds: float) -> None:
        self._local.seconds = self.seconds() + seconds


class Hdf5File:
    """A file that every thread opens for itself; what was opened before a fork is not used after it."""

    def __init__(self, path: Path, wait: LockWait) -> None:
        self.path, self._wait = path, wait
        self._local = threading.local()

    def dataset(self, name: str) -> Any:
        """A dataset through the handle of this thread."""
        kept: dict[tuple[int, str], Any] = self._local.__dict__.setdefault("datasets", {})
        process = os.getpid()
        found = kept.get((process, name))
        if found is None:
            found = kept[process, name] = self._handle(process)[name]
        return found

    def _handle(self, process: int) -> Any:
        handles: dict[int, Any] = self._local.__dict__.setdefault("handles", {})
        if process not in handles:
            handles[process] = open_hdf5(self.path, check=False)
        return handles[process]

    def read(self, name: str, row: Any) -> Any:
        """Some rows of a dataset; the time that other threads hold h5py's lock is counted."""
        dataset = self.dataset(name)
        with self._locked():
            return dataset[row]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        from h5py._objects import phil  # h5py itself takes it for every call; it may be taken again inside

        begin = time.perf_counter()
        with phil:
            self._wait.add(time.perf_counter() - begin)
            yield


def open_hdf5(path: Path, *, check: bool = True) -> Any:
    """An open file, or an error that says what is wrong with it; what was opened before need not be checked again."""
    try:
        return open_hdf5_file(path, check=check, rdcc_nbytes=CHUNK_CACHE_BYTES)
    except FileNotFoundError:
        raise DataError([Problem(str(path), None, "no such file", "Check the path")]) from None
    except OSError as error:
        raise DataError([Problem(str(path), None, *_reason(str(error)))]) from error


def _reason(message: str) -> tuple[str, str]:
    if any(words in message for words in _LEFT_OPEN):
        return (
            "it is marked as open for writing: its writer still runs, or ended without closing it",
            "Close the writer; if it crashed, make a copy and run `h5clear -s` on it, then check its last rows",
        )
    if "truncated" in message:
        return f"it is cut short ({message})", "Copy or download it again"
    if "signature not found" in message:
        return "it is not an HDF5 file", "Check the path"
    if "unable to lock" in message.lower():
        return "another program holds a lock on it", "Close that program, or set HDF5_USE_FILE_LOCKING=FALSE"
    return (
        f"it cannot be opened as HDF5 ({message})",
        "Its writer may have ended before it closed the file; write it again",
    )
