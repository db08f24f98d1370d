"""What is gathered frame by frame about one video, kept so that a killed process loses at most some seconds.

    .mouse_outputs.h5.growing/       beside the file that it will become
        made_by.json                 what the rows depend on: another model or video begins anew
        frames.jsonl                 {"frames": 512, "problems": []}     one line for each commit, after its rows
        logits.bin, …                one file for each column: rows of numbers, nothing else

HDF5 itself can be left unreadable by a process that dies while it writes; plain rows cannot. A commit first brings the
rows to the disk and then notes how many there are, so what is noted is whole. Rows beyond that are cut off when the
folder is opened again.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError, Problem
from penstock.storage.documents import load_json
from penstock.storage.plain_files import read_file, read_text
from penstock.storage.whole_files import write_whole

# 17 seconds of video at 30 frames per second; a commit takes some milliseconds.
COMMIT_FRAMES = 512
_IDENTITY, _JOURNAL = "made_by.json", "frames.jsonl"


class Column(NamedTuple):
    """Numbers for each frame: how many, and of which kind."""

    width: int
    dtype: str = "float32"

    @property
    def row_bytes(self) -> int:
        return self.width * np.dtype(self.dtype).itemsize


class FeatureFile:
    """Columns of one video that grow, block by block.

    `target` is the file that they will be saved to, `made_by` all that decides the numbers (the model, the video, its
    size and time). Where a folder of an earlier process was made by the same, `frames` says how many frames are there
    already; else, and with `fresh`, it begins anew.
    """

    def __init__(
        self,
        target: Path,
        columns: Mapping[str, Column],
        made_by: Mapping[str, Any],
        *,
        fresh: bool = False,
    ) -> None:
        self.folder = target.with_name(f".{target.name}.growing")
        self.columns = dict(columns)
        self.frames = 0
        self.problems: list[Problem] = []
        self._noted_frames, self._pending = 0, list[Problem]()
        identity = json.dumps({"made_by": made_by, "columns": self.columns}, sort_keys=True)
        if fresh or not self._is_of(identity) or not self._go_on():
            self._begin(identity)
        self._files = {name: self._path(name).open("ab") for name in self.columns}

    def append(self, blocks: Mapping[str, NDArray[Any]], problems: Iterable[Problem] = ()) -> None:
        """Add the rows of the next frames, all columns together, and what was wrong with those frames."""
        count = self._check(blocks)
        for name, block in blocks.items():
            self._files[name].write(np.ascontiguousarray(block, self.columns[name].dtype).tobytes())
        self.frames += count
        self.problems += (new := list(problems))
        self._pending += new
        if self.frames - self._noted_frames >= COMMIT_FRAMES:
            self.commit()

    def commit(self) -> None:
        """Bring all rows to the disk and note them; nothing that was noted is lost."""
        if self.frames == self._noted_frames and not self._pending:
            return
        for file in self._files.values():
            _to_disk(file)
        note = {"frames": self.frames, "problems": [problem.as_dict() for problem in self._pending]}
        with (self.folder / _JOURNAL).open("a", encoding="utf-8") as journal:
            journal.write(json.dumps(note) + "\n")
            _to_disk(journal)
        self._noted_frames, self._pending = self.frames, []

    def column(self, name: str) -> NDArray[Any]:
        """All frames of a column so far, mapped and not to be written to."""
        self._files[name].flush()
        return self._mapped(name, self.columns[name])

    def _mapped(self, name: str, column: Column) -> NDArray[Any]:
        width, dtype = column
        if not self.frames:
            return np.zeros((0, width), dtype)
        return np.memmap(self._path(name), dtype, "r", shape=(self.frames, width))

    def beside(self, name: str, column: Column, blocks: Iterable[NDArray[Any]]) -> NDArray[Any]:
        """Further numbers about all frames, written block by block and mapped; they are gone with the folder."""
        with self._path(name).open("wb") as file:
            for block in blocks:
                file.write(np.ascontiguousarray(block, column.dtype).tobytes())
        return self._mapped(name, column)

    def close(self) -> None:
        """Commit, and let the files go; the folder stays for the next process."""
        self.commit()
        self._let_go()

    def discard(self) -> None:
        """Remove the folder, once the target is written."""
        self._let_go()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.folder.is_dir() and not any(file.closed for file in self._files.values()):
            self.close()

    def _let_go(self) -> None:
        for file in self._files.values():
            with contextlib.suppress(OSError):
                file.close()

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.bin"

    def _is_of(self, identity: str) -> bool:
        try:
            return read_text(self.folder / _IDENTITY) == identity
        except (OSError, UnicodeDecodeError):
            return False

    def _begin(self, identity: str) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for name in self.columns:
            self._path(name).touch()
        (self.folder / _JOURNAL).touch()
        # Last, so that a folder with an identity has all of its files.
        write_whole(self.folder / _IDENTITY, identity)

    def _go_on(self) -> bool:
        """Take over what was noted, and cut off what a killed process had begun; False where the folder is damaged."""
        journal = self.folder / _JOURNAL
        try:
            whole = read_file(journal).rpartition(b"\n")
            notes = [load_json(line) for line in whole[0].split(b"\n") if line]
            frames = int(notes[-1]["frames"]) if notes else 0
            problems = [Problem(**one) for note in notes for one in note["problems"]]
            lengths = {self._path(name): frames * column.row_bytes for name, column in self.columns.items()}
            if any(path.stat().st_size < length for path, length in lengths.items()):
                return False
        except (OSError, ValueError, KeyError, TypeError):
            return False
        for path, length in (lengths | {journal: len(whole[0]) + len(whole[1])}).items():
            os.truncate(path, length)
        self.frames, self._noted_frames, self.problems = frames, frames, problems
        return True

    def _check(self, blocks: Mapping[str, NDArray[Any]]) -> int:
        if set(blocks) != set(self.columns):
            raise OptionError(f"blocks are {sorted(blocks)}, expected {sorted(self.columns)}.")
        counts = {len(block) for block in blocks.values()}
        wrong = [name for name, block in blocks.items() if block.shape[1:] != (self.columns[name].width,)]
        if wrong or len(counts) != 1:
            shapes = {name: block.shape for name, block in blocks.items()}
            widths = {name: column.width for name, column in self.columns.items()}
            raise OptionError(f"blocks have the shapes {shapes}, expected equally many rows of {widths} numbers.")
        return counts.pop()


def _to_disk(file: IO[Any]) -> None:
    file.flush()
    os.fsync(file.fileno())
