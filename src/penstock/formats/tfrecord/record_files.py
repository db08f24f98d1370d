"""Which files are meant, and compressed ones as plain files: each is unpacked once into the cache folder.

cache folder / unpacked / <hash of the file's path, size and time of change>.tfrecord
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from penstock.errors import DataError, Problem
from penstock.formats.indexed.mapped_files import FileState
from penstock.formats.indexed.unpacking import unpacked_file
from penstock.formats.paths import PathLike, expand, natural
from penstock.formats.tfrecord.framing import HEAD_BYTES, masked_crc32c
from penstock.storage.plain_files import open_file
from penstock.wording import counted

Compression = Literal["auto", "none", "gzip", "zlib"]
COMPRESSIONS = ("auto", "none", "gzip", "zlib")

_IN_FOLDER = re.compile(r"\.tfrec(ord)?s?\b|\.records?$|-\d{5}-of-\d{5}(\.gz|\.zz|\.gzip|\.zlib)?$")


def record_files(paths: PathLike | Sequence[PathLike]) -> list[str]:
    """The TFRecord files of a path, a pattern, a folder, or a list of these, in natural order."""
    found: dict[str, None] = {}
    for path in expand(paths):
        found.update(dict.fromkeys(_below(path) if path.is_dir() else [os.fspath(path.absolute())]))
    return list(found)


def _below(folder: Path) -> list[str]:
    names = [path.name for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]
    chosen = sorted((name for name in names if _IN_FOLDER.search(name)), key=natural)
    if not chosen:
        raise DataError([
            Problem(
                str(folder),
                None,
                f"none of its {counted(len(names), 'file')} is called like a TFRecord (*.tfrecord, *-00000-of-00010)",
                "Pass the files themselves, or a pattern with *",
            )
        ])  # fmt: skip
    return [os.fspath((folder / name).absolute()) for name in chosen]


def compression_of(path: str) -> str:
    """none, gzip or zlib, by the first bytes; a file that is none of these is called none, and read as such."""
    with open_file(path) as file:
        first = file.read(HEAD_BYTES)
    if len(first) == HEAD_BYTES and masked_crc32c(first[:8]) == struct.unpack("<I", first[8:])[0]:
        return "none"
    if first[:2] == b"\x1f\x8b":
        return "gzip"
    is_zlib = len(first) > 1 and first[0] & 0x0F == 8 and first[0] >> 4 <= 7 and (first[0] << 8 | first[1]) % 31 == 0
    return "zlib" if is_zlib else "none"


def checked_compression(path: str, wanted: Compression) -> str:
    """How a file is compressed; DataError where the user says otherwise."""
    found = compression_of(path)
    if wanted not in ("auto", found) and os.stat(path).st_size:  # noqa: PTH116 - an empty file is everything
        is_plain = "is not compressed" if found == "none" else f"is compressed with {found}"
        expected = "should not be" if wanted == "none" else f"compression={wanted!r} was given"
        raise DataError([Problem(path, None, f"{is_plain}, and {expected}", 'Pass compression="auto"')])
    return found


def plain_file(state: FileState, compression: Compression) -> FileState:
    """The file itself where it is plain, else what it was unpacked to."""
    found = checked_compression(state.path, compression)
    if found == "none":
        return state
    return unpacked_file(state, found, ".tfrecord")
