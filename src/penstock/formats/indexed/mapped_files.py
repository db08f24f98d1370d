"""Files of samples as mapped memory, each mapped on first use, as long as it is the file that was indexed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, Problem
from penstock.storage.mapped import Mapped, mapped_buffer

Numbers = NDArray[np.int64]


class FileState(NamedTuple):
    """A file when it was indexed; another size or time of change means another file."""

    path: str
    size: int
    changed_ns: int


def state_of(path: str) -> FileState:
    """How a file is now; DataError where it cannot be looked at."""
    try:
        state = os.stat(path)  # noqa: PTH116 - asked for thousands of files: a Path would take ten times as long
    except OSError as error:
        raise DataError([Problem(path, None, f"cannot be read: {error.strerror}", "Check the path")]) from error
    return FileState(path, state.st_size, state.st_mtime_ns)


def unchanged(states: Sequence[FileState]) -> list[FileState]:
    """The same states; DataError where files are not as they were."""
    changed = [state.path for state in states if state_of(state.path) != state]
    if changed:
        raise DataError([Problem(path, None, "has changed since it was opened", "Open it again") for path in changed])
    return list(states)


class MappedFile:
    """One mapped file, as long as it is the one that was indexed."""

    def __init__(self, state: FileState) -> None:
        unchanged([state])
        self._buffer = mapped_buffer(state.path, state.size)
        self.data = memoryview(self._buffer).cast("B")
        self.memory = Mapped(self._buffer.address, self._buffer.size)


class MappedFiles:
    """The files of a source by number."""

    def __init__(self, states: Sequence[FileState]) -> None:
        self.states = tuple(states)
        self._mapped: list[MappedFile | None] = [None] * len(self.states)

    def __getitem__(self, number: int) -> MappedFile:
        # Two threads may map the same file at once; the later one wins and nothing is lost.
        return self._mapped[number] or self._map(number)

    def _map(self, number: int) -> MappedFile:
        self._mapped[number] = found = MappedFile(self.states[number])
        return found

    @property
    def bytes(self) -> int:
        return sum(state.size for state in self.states)
