"""The files in a tar archive: their names, and where their bytes are. Nothing is ever unpacked from it."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import NamedTuple

from penstock.errors import DataError, Problem
from penstock.formats.paths import unsafe

BLOCK_BYTES = 512
_REMEDY = "Copy it again, or make it anew"


class Member(NamedTuple):
    """One file of an archive: its name, the header it begins with, and its bytes."""

    name: str
    header: int
    offset: int
    size: int


class NotRead(NamedTuple):
    """An entry that cannot be a file of a sample, and why."""

    name: str
    header: int
    why: str


def scan(path: str, plain_path: str, data: memoryview) -> Iterator[Member | NotRead]:
    """Every file in order; DataError where the archive is cut short or damaged, with the byte.

    `plain_path` is the archive without compression, which `data` is mapped from; errors name `path`.
    """
    if not len(data):
        raise DataError([Problem(path, None, "is empty", _REMEDY)])
    position = 0
    try:
        with tarfile.open(plain_path, "r:") as archive:
            while (entry := archive.next()) is not None:
                if entry.size < 0 or archive.offset <= position:  # a size in the headers may lead back: without end
                    raise tarfile.ReadError(f"{entry.name} has {entry.size:,} bytes")
                position = archive.offset
                if entry.offset_data + (entry.size if entry.isreg() else 0) > len(data):
                    raise _cut(path, entry.name, entry.offset_data, entry.size, len(data))
                if not entry.isdir():
                    yield _looked_at(entry)
                archive.members = []  # type: ignore[attr-defined]  # else it remembers all of them
    # tarfile raises these for sizes beyond any file, and for headers of headers of headers.
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        what = f"is no tar archive, or damaged or cut short at byte {position:,}: {error}"
        raise DataError([Problem(path, None, what, _REMEDY)]) from error
    _check_end(path, data, position)


def _looked_at(entry: tarfile.TarInfo) -> Member | NotRead:
    name = entry.name.removeprefix("./")
    if unsafe(entry.name):
        return NotRead(entry.name, entry.offset, "its path climbs out of its folder")
    if entry.issym() or entry.islnk():
        return NotRead(name, entry.offset, f"it is a link to {entry.linkname!r}")
    if not entry.isreg() or entry.issparse():
        return NotRead(name, entry.offset, "it is not a plain file")
    return Member(name, entry.offset, entry.offset_data, entry.size)


def _cut(path: str, name: str, offset: int, size: int, there: int) -> DataError:
    what = f"is cut short: {name} at byte {offset:,} has {size:,} bytes, and {max(there - offset, 0):,} are there"
    return DataError([Problem(path, None, what, _REMEDY)])


def _check_end(path: str, data: memoryview, position: int) -> None:
    """An archive ends with blocks of zeros; a damaged header or a cut between two files looks like an end too."""
    rest = bytes(data[position : position + BLOCK_BYTES])
    if len(rest) < BLOCK_BYTES:
        what = f"is cut short at byte {position:,}: the mark that ends an archive is missing"
        raise DataError([Problem(path, None, what, _REMEDY)])
    if rest.strip(b"\0"):
        raise DataError([Problem(path, None, f"is damaged at byte {position:,}: no header of a file", _REMEDY)])
