"""A piece of an export: what is written before it is noted as done, and what an interruption costs at most."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from csv import writer as csv_writer
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from penstock.formats.exporting.names import Names
from penstock.formats.exporting.options import ExportOptions
from penstock.formats.exporting.rendering import Rendering
from penstock.formats.exporting.roles import Roles
from penstock.samples import Schema
from penstock.storage.writing.preparing import Row

# What the journal keeps of a piece beside the tables of formats.
FILES = "files"
NAMES = "names"


@dataclass(frozen=True)
class Limits:
    """Where a piece ends; None: only where its output does."""

    samples: int | None = None
    byte_count: int | None = None


# Formats of many small files, or of files that grow: some seconds of work, and few enough lines to hold.
MANY_FILES = Limits(samples=1024, byte_count=64 << 20)


@dataclass
class Piece:
    """What is known of a piece while it is written; `lines` are kept until the tables are made of them.

    `unit` is the output that it belongs to (a split, a video), `before` the samples of earlier pieces of that output,
    `place` how many pieces there were.
    """

    number: int
    unit: str
    split: str
    before: int
    place: int
    lines: dict[str, list[str]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    rows: int = 0
    byte_count: int = 0

    @property
    def position(self) -> int:
        """The number that the next sample has in its output."""
        return self.before + self.rows

    def add_line(self, table: str, line: str) -> None:
        self.lines.setdefault(table, []).append(line)

    def claim(self, names: Names, name: str) -> str:
        """A name that no other sample has, noted for when work goes on."""
        free = names.claim(name)
        self.add_line(NAMES, free)
        return free

    def add_file(self, folder: Path, name: str, data: bytes | memoryview) -> None:
        """Write a file and note it."""
        path = folder / name
        try:
            path.write_bytes(data)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        self.note_file(name, len(data))

    def note_file(self, name: str, size: int) -> None:
        self.add_line(FILES, f"{size} {name}")


@dataclass(frozen=True)
class Brief:
    """What a format is told when an export begins."""

    schema: Schema
    roles: Roles
    options: ExportOptions
    has_splits: bool
    folder: Path
    names: Names

    @property
    def place_names(self) -> tuple[str, ...]:
        """Columns that say where a sample belongs."""
        return ("group", "split") if self.has_splits else ("group",)

    def places_of(self, piece: Piece, row: Row) -> list[str]:
        """Their values; a sample without a group is one by itself."""
        group = str(row.values.get("group") or row.values["key"])
        return [group, piece.split or str(row.values.get("split") or "")] if self.has_splits else [group]


class PieceWriter(Protocol):
    """Writes the samples of one piece."""

    def add(self, row: Row) -> None: ...
    def close(self) -> None:
        """Finish the files."""
        ...

    def abandon(self) -> None:
        """Let go of the files, whatever is in them."""
        ...


class Finished(Protocol):
    """What a format may ask when every piece is done."""

    @property
    def samples(self) -> int: ...
    @property
    def units(self) -> Sequence[dict[str, Any]]: ...
    @property
    def splits(self) -> dict[str, int]: ...
    def lines(self, table: str, *, unit: str | None = None) -> Iterator[str]:
        """All lines that pieces kept for a table, in order; those of one output where it is named."""
        ...


class FormatWriter(Protocol):
    """What writes a format: what it holds, what workers make of a row, how pieces and tables are written."""

    limits: Limits
    # One output for each video, where samples are frames; else one for each split.
    whole_videos: bool

    def rendering(self) -> Rendering: ...
    def left_out(self) -> tuple[str, ...]:
        """Fields that the format has no place for."""
        ...

    def begin(self, piece: Piece) -> PieceWriter: ...
    def finish(self, finished: Finished) -> None:
        """Write what needs all pieces: tables, lists of classes."""
        ...


def csv_line(values: Sequence[Any]) -> str:
    """One line of a CSV file, without its end."""
    text = io.StringIO()
    csv_writer(text, lineterminator="").writerow(values)
    return text.getvalue()
