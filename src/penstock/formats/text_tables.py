"""CSV and its relatives as columns of text, with the line of every record as an editor counts it.

The structure is found by numpy over the bytes (where records end, how many fields they have), so that blank
lines, quoted line breaks and records of the wrong length are known by line; pyarrow then cuts the good ones.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, Problem
from penstock.storage.plain_files import read_file

_NEWLINE, _QUOTE = 10, 34
SEPARATORS = (",", ";", "\t")


@dataclass(frozen=True)
class TextTable:
    """The records of a text table: `columns` holds one object array of texts per field of the header."""

    header: tuple[str, ...]
    columns: tuple[NDArray[Any], ...]
    lines: NDArray[np.int64]
    header_line: int
    separator: str
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class _Records:
    """Where the records of a text begin and end, without the blank ones."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    lines: NDArray[np.int64]
    inside_quotes: NDArray[np.bool_] | None

    def from_line(self, line: int) -> _Records:
        kept = self.lines >= line
        return replace(self, starts=self.starts[kept], ends=self.ends[kept], lines=self.lines[kept])

    def text(self, number: int) -> str:
        return self.data[self.starts[number] : self.ends[number]].tobytes().decode()


def read_text_table(path: Path, name: str, *, first_line: int = 1) -> TextTable | None:
    """The table, its first record from `first_line` on as the header; None when the file holds no record at all."""
    data, problems = _utf8(path, name)
    records = _records(data, name).from_line(first_line)
    if not len(records.starts):
        return None
    separator = _separator(records.text(0))
    header = tuple(field.strip() for field in next(csv.reader(io.StringIO(records.text(0)), delimiter=separator)))
    field_counts = _field_counts(records, separator)
    good = field_counts == len(header)
    problems += [
        Problem(
            name,
            int(records.lines[number]),
            f"the line has {field_counts[number]} fields, the first line has {len(header)}",
            "Add or remove separators, or put quotes around a text that contains one",
        )
        for number in np.flatnonzero(~good)
    ]
    good[0] = False
    columns = _cut(records, good, len(header), separator, name)
    return TextTable(header, columns, records.lines[good], int(records.lines[0]), separator, tuple(problems))


def _utf8(path: Path, name: str) -> tuple[bytes, list[Problem]]:
    """The bytes of a file as UTF-8 with plain line ends; another encoding is converted and warned about."""
    try:
        data = read_file(path)
    except OSError as error:
        raise DataError([Problem(name, None, f"cannot be read: {error.strerror}", "Check the path")]) from error
    problems: list[Problem] = []
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = data.decode("utf-16", "replace").encode()
    if b"\0" in data:
        what = f"not a text file (binary data at byte {data.index(0):,})"
        raise DataError([Problem(name, None, what, "Expected a table as CSV or Parquet")])
    try:
        data.decode()
    except UnicodeDecodeError:
        data = data.decode("cp1252", "replace").encode()
        what = "the text is not UTF-8 and was read as Windows-1252 (Latin-1)"
        problems.append(Problem(name, None, what, "Save it as UTF-8 if names look wrong", warning=True))
    data = data.removeprefix(b"\xef\xbb\xbf")
    if b"\r" in data:  # a lone one is how old programs end a line
        data = re.sub(rb"\r(?!\n)", b"\n", data)
    return data, problems


def _records(text: bytes, name: str) -> _Records:
    """Split into records at line ends outside quotes, and drop those that hold nothing but blanks."""
    if b' "' in text:  # quotes count only at the start of a field, and people put blanks before them
        within = np.logical_xor.accumulate(np.frombuffer(text, np.uint8) == _QUOTE)
        text = re.sub(rb'(^|[,;\t\n]) +"', lambda found: found[0] if within[found.start()] else found[1] + b'"', text)
    if not text.endswith(b"\n"):
        text += b"\n"
    data = np.frombuffer(text, np.uint8)
    newline = data == _NEWLINE
    inside = None
    if b'"' in text:
        inside = np.logical_xor.accumulate(data == _QUOTE)
        if inside[-1]:
            raise DataError([_unclosed(data, inside, newline, name)])
    breaks = np.flatnonzero(newline if inside is None else newline & ~inside)
    starts = np.concatenate([[0], breaks[:-1] + 1])
    newlines_before = np.cumsum(newline)
    lines = np.where(starts == 0, 1, newlines_before[np.maximum(starts, 1) - 1] + 1)
    visible = np.add.reduceat(data > 32, starts) > 0
    return _Records(data, starts[visible], breaks[visible], lines[visible], inside)


def _unclosed(data: NDArray[np.uint8], inside: NDArray[np.bool_], newline: NDArray[np.bool_], name: str) -> Problem:
    """The last quote that opens and is not closed again."""
    opening = int(np.flatnonzero((data == _QUOTE) & inside)[-1])
    line = int(np.count_nonzero(newline[:opening])) + 1
    return Problem(name, line, "a quote is opened here and never closed", "Close it, or remove the quote")


def _separator(first: str) -> str:
    """The separator that occurs most in the first record; a comma when there is none."""
    return max(SEPARATORS, key=first.count)


def _field_counts(records: _Records, separator: str) -> NDArray[np.int64]:
    marks = records.data == ord(separator)
    if records.inside_quotes is not None:
        marks &= ~records.inside_quotes
    before = np.concatenate([[0], np.cumsum(marks)])
    counts: NDArray[np.int64] = before[records.ends] - before[records.starts] + 1
    return counts


def _cut(
    records: _Records, wanted: NDArray[np.bool_], width: int, separator: str, name: str
) -> tuple[NDArray[Any], ...]:
    """The wanted records as columns of stripped texts."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv as arrow_csv

    if not wanted.any():
        return tuple(np.empty(0, object) for _ in range(width))
    names = [str(number) for number in range(width)]
    quoted = records.inside_quotes is not None
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(_joined(records, wanted)),
            read_options=arrow_csv.ReadOptions(column_names=names, use_threads=False),
            parse_options=arrow_csv.ParseOptions(
                delimiter=separator, newlines_in_values=quoted, ignore_empty_lines=False
            ),
            convert_options=arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
        )
    except pa.ArrowInvalid as error:
        remedy = "Put quotes around the whole field, or remove them"
        raise DataError([Problem(name, None, f"a quoted field is broken: {error}", remedy)]) from error
    return tuple(pc.utf8_trim_whitespace(column).to_numpy(zero_copy_only=False) for column in table.columns)


def _joined(records: _Records, wanted: NDArray[np.bool_]) -> bytes:
    """The bytes of the wanted records, each with its line end."""
    steps = np.zeros(len(records.data) + 1, np.int8)
    steps[records.starts[wanted]] += 1
    steps[records.ends[wanted] + 1] -= 1
    chosen: bytes = records.data[np.cumsum(steps[:-1], dtype=np.int8).astype(bool)].tobytes()
    return chosen
