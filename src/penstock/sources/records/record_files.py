"""Which files are meant, and compressed ones as plain files: each is unpacked once into the cache folder.

cache folder / unpacked / <hash of the file's path, size and time of change>.tfrecord
"""

from __future__ import annotations

import os
import re
import struct
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Literal

import xxhash

from penstock.codecs.tfrecord import HEAD_BYTES, masked_crc32c
from penstock.errors import DataError, Problem
from penstock.sources.indexed.mapped_files import FileState, state_of
from penstock.sources.paths import PathLike, expand, natural
from penstock.storage.cache_folder import cache_folder

Compression = Literal["auto", "none", "gzip", "zlib"]
COMPRESSIONS = ("auto", "none", "gzip", "zlib")

_IN_FOLDER = re.compile(r"\.tfrec(ord)?s?\b|\.records?$|-\d{5}-of-\d{5}(\.gz|\.zz|\.gzip|\.zlib)?$")
_CHUNK_BYTES = 1 << 20
_WINDOW_BITS = {"gzip": 31, "zlib": 15}


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
                f"none of its {len(names):,} files is called like a TFRecord (*.tfrecord, *-00000-of-00010)",
                "Pass the files themselves, or a pattern with *",
            )
        ])  # fmt: skip
    return [os.fspath((folder / name).absolute()) for name in chosen]


def compression_of(path: str) -> str:
    """none, gzip or zlib, by the first bytes; a file that is none of these is called none, and read as such."""
    with Path(path).open("rb") as file:
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
    name = xxhash.xxh3_128_hexdigest(repr(tuple(state)).encode()) + ".tfrecord"
    try:
        target = cache_folder() / "unpacked" / name
        if target.is_file():
            return state_of(os.fspath(target))
        target.parent.mkdir(parents=True, exist_ok=True)
        return _unpack(state.path, found, target)
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
        remedy = "Make room, set PENSTOCK_CACHE to another folder, or use TFRecords.stream(…), which unpacks nothing"
        raise DataError([Problem(state.path, None, f"cannot be unpacked: {error}", remedy)]) from error


def _unpack(path: str, compression: str, target: Path) -> FileState:
    """Whole or not at all; memory stays small however large the content is."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as out, Path(path).open("rb") as file:
            for piece in unpacked_pieces(file, path, compression):
                out.write(piece)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return state_of(os.fspath(target))


def unpacked_pieces(file: IO[bytes], path: str, compression: str) -> Iterator[bytes]:
    """The content of a compressed file, at most a megabyte at a time."""
    decompressor, data, position = zlib.decompressobj(_WINDOW_BITS[compression]), b"", 0
    while True:
        if not data:
            data = file.read(_CHUNK_BYTES)
            position += len(data)
        if decompressor.eof:  # gzip files may be joined
            if not data:
                return
            decompressor = zlib.decompressobj(_WINDOW_BITS[compression])
        try:
            piece = decompressor.decompress(data, _CHUNK_BYTES)
        except zlib.error as error:
            raise _damaged(path, f"its {compression} data is damaged before byte {position:,}: {error}") from error
        if not piece and not data and not decompressor.eof:
            raise _damaged(path, f"its {compression} data ends too early, at byte {position:,}")
        data = decompressor.unused_data if decompressor.eof else decompressor.unconsumed_tail
        if piece:
            yield piece


def _damaged(path: str, what: str) -> DataError:
    return DataError([Problem(path, None, what, "Copy it again, or make it anew")])
