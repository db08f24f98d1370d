"""What an export has finished, so that an interruption costs at most one piece.

out.partial/
  plan.json          what is being exported and how; must be the same when work goes on
  journal.jsonl      one line for each finished piece
  000000.files        the files of a piece with their sizes
  000000.stamps       for each of its samples, a number that changes when its file or labels do
  000000.<table>      lines for a table that is written at the end
  export/            the export to be
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.formats.exporting.pieces import FILES, Piece
from penstock.storage.writing.journal import WorkJournal
from penstock.storage.writing.work import Place


@dataclass(frozen=True)
class FinishedPiece:
    """A line of the journal: its samples begin with number `first` of a run, and work goes on at `after` in it."""

    unit: str
    split: str
    rows: int
    run: int
    first: int
    after: tuple[int, int]
    facts: dict[str, Any]
    tables: list[str]
    skipped: list[dict[str, Any]]


class ExportJournal(WorkJournal[FinishedPiece]):
    """The record of an export that is being written."""

    def parsed(self, values: dict[str, Any]) -> FinishedPiece:
        return FinishedPiece(**values)

    def go_on(self, plan: dict[str, Any]) -> None:
        super().go_on(plan)
        for path in self.places.workshop.iterdir():
            if path.name[:6].isdecimal() and int(path.name[:6]) >= len(self.finished):
                path.unlink()

    def is_whole(self, line: FinishedPiece, number: int) -> bool:
        tables = [self._path(number, table) for table in (*line.tables, "stamps")]
        if not all(path.exists() for path in tables):
            return False
        return all(_size(self.places.content / name) >= size for name, size in self.files(number))

    def add(
        self, piece: Piece, run: int, first: int, after: Place, stamps: list[int], skipped: list[dict[str, Any]]
    ) -> None:
        for table, lines in piece.lines.items():
            self._path(piece.number, table).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        self._path(piece.number, "stamps").write_bytes(np.array(stamps, np.uint64).tobytes())
        noted = FinishedPiece(
            piece.unit,
            piece.split,
            piece.rows,
            run,
            first,
            (after.part, after.sample),
            piece.facts,
            list(piece.lines),
            skipped,
        )
        self.note(noted)

    def stamps(self, number: int) -> NDArray[np.uint64]:
        return np.fromfile(self._path(number, "stamps"), np.uint64)

    def files(self, number: int) -> Iterator[tuple[str, int]]:
        """The files of a piece and how large they were when it was done."""
        for line in self.piece_lines(number, FILES):
            size, _, name = line.partition(" ")
            yield name, int(size)

    def piece_lines(self, number: int, table: str) -> Iterator[str]:
        path = self._path(number, table)
        if path.exists():
            with path.open(encoding="utf-8", newline="") as file:
                yield from (line.removesuffix("\n") for line in file)

    def _path(self, number: int, table: str) -> Path:
        return self.places.workshop / f"{number:06d}.{table}"

    # What formats ask at the end

    @property
    def samples(self) -> int:
        return sum(piece.rows for piece in self.finished)

    @property
    def splits(self) -> dict[str, int]:
        """How many samples each split has; nothing where there are no splits."""
        counts: dict[str, int] = {}
        for piece in self.finished:
            if piece.split:
                counts[piece.split] = counts.get(piece.split, 0) + piece.rows
        return counts

    def lines(self, table: str, *, unit: str | None = None) -> Iterator[str]:
        """All lines that pieces kept for a table, in order; those of one output where it is named."""
        for number, piece in enumerate(self.finished):
            if unit is None or piece.unit == unit:
                yield from self.piece_lines(number, table)

    @property
    def units(self) -> list[dict[str, Any]]:
        """What is known of each output, joined over its pieces: a video and its frames, the samples of a split."""
        found: dict[str, dict[str, Any]] = {}
        for piece in self.finished:
            facts = found.setdefault(piece.unit, {"name": piece.unit, "samples": 0, **piece.facts})
            facts["samples"] += piece.rows
            facts["last_time"] = piece.facts.get("last_time")
        return list(found.values())


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1
