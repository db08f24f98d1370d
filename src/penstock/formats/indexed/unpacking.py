"""Compressed files as plain ones: each is unpacked once, into the cache folder, where it can be mapped.

cache folder / unpacked / <hash of the file's path, size and time of change>.tfrecord
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import xxhash

from penstock.errors import DataError, Problem
from penstock.formats.indexed.mapped_files import FileState, state_of
from penstock.storage.free_memory import check_unpacked
from penstock.storage.locations import cache_folder
from penstock.storage.plain_files import open_file
from penstock.storage.whole_files import whole_file

_CHUNK_BYTES = 1 << 20
_WINDOW_BITS = {"gzip": 31, "zlib": 15}


def unpacked_file(state: FileState, compression: str, ending: str) -> FileState:
    """What a compressed file was unpacked to, now or earlier."""
    name = xxhash.xxh3_128_hexdigest(repr(tuple(state)).encode()) + ending
    try:
        target = cache_folder() / "unpacked" / name
        if target.is_file():
            return state_of(os.fspath(target))
        target.parent.mkdir(parents=True, exist_ok=True)
        return _unpack(state.path, compression, target)
    except ValueError as error:
        raise DataError([Problem(state.path, None, f"it is refused: {error}", "Unpack it yourself")]) from error
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
        remedy = "Make room, set PENSTOCK_CACHE to another folder, or unpack it yourself"
        raise DataError([Problem(state.path, None, f"cannot be unpacked: {error}", remedy)]) from error


def _unpack(path: str, compression: str, target: Path) -> FileState:
    """Whole or not at all; memory stays small however large the content is."""
    with whole_file(target, sync=False) as partial, partial.open("wb") as out, open_file(path) as file:
        for piece in unpacked_pieces(file, path, compression):
            out.write(piece)
            check_unpacked(out.tell(), file.tell(), in_memory=False)
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
