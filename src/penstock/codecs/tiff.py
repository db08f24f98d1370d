"""The first directory of a TIFF or BigTIFF: size, depth, orientation, and where its pixels end."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from penstock.storage.plain_files import open_file

_FORMATS = {1: "B", 3: "H", 4: "I", 16: "Q"}
_WIDTH, _HEIGHT, _BITS, _STRIP_OFFSETS, _ORIENTATION, _CHANNELS, _STRIP_BYTES = 256, 257, 258, 273, 274, 277, 279
_TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS, _TILE_BYTES = 322, 323, 324, 325
_COMPRESSION, _COLOURS, _BIT_ORDER, _STRIP_ROWS, _PLANES = 259, 262, 266, 278, 284
_GEO_KEYS = 34735


class Directory(NamedTuple):
    width: int
    height: int
    bits: int
    channels: int
    orientation: int
    end: int


class Blocks(NamedTuple):
    """The pixels of an uncompressed image: strips, or tiles that are filled up to whole ones at the borders."""

    width: int
    height: int
    block_width: int
    block_height: int
    is_striped: bool
    offsets: tuple[int, ...]


def plain_blocks(data: bytes | bytearray | memoryview | mmap.mmap) -> Blocks | None:
    """Where the blocks of the first image begin, if they hold red, green and blue bytes pixel by pixel; or None."""
    tags = _tags(data)
    stored = {_COMPRESSION: 1, _BIT_ORDER: 1, _PLANES: 1, _CHANNELS: 3, _COLOURS: 2}
    if any(_one(tags, tag, 1) != value for tag, value in stored.items()) or tags.get(_BITS) != (8, 8, 8):
        return None
    width, height = _one(tags, _WIDTH, 0), _one(tags, _HEIGHT, 0)
    if _TILE_OFFSETS in tags:
        sides = _one(tags, _TILE_WIDTH, 0), _one(tags, _TILE_HEIGHT, 0)
        return Blocks(width, height, *sides, False, tags[_TILE_OFFSETS])
    rows = min(height, _one(tags, _STRIP_ROWS, height))
    return Blocks(width, height, width, rows, True, tags.get(_STRIP_OFFSETS, ()))


def first_directory(data: bytes | bytearray | memoryview) -> Directory:
    """Raises struct.error where the file is cut short before the directory is."""
    tags = _tags(data)
    orientation = _one(tags, _ORIENTATION, 1)
    return Directory(
        width=_one(tags, _WIDTH, 0),
        height=_one(tags, _HEIGHT, 0),
        bits=max(8, _one(tags, _BITS, 8)),
        channels=_one(tags, _CHANNELS, 1),
        orientation=orientation if 1 <= orientation <= 8 else 1,
        end=max(_end(tags, _STRIP_OFFSETS, _STRIP_BYTES), _end(tags, _TILE_OFFSETS, _TILE_BYTES)),
    )


def without_orientation(data: bytes | bytearray | memoryview) -> bytes:
    """The same file, whose first directory says that it is upright: some decoders turn images by themselves."""
    changed = bytearray(data)
    for tag, kind, place in _entries(data):
        if tag == _ORIENTATION and kind == 3:
            struct.pack_into(_order(data) + "H", changed, place, 1)
    return bytes(changed)


def is_georeferenced(path: Path) -> bool:
    """Whether a TIFF says in which coordinates of the earth it lies; a file that cannot be read does not."""
    try:
        with open_file(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return bytes(data[:2]) in (b"II", b"MM") and _GEO_KEYS in _tags(data)
    except (OSError, ValueError, struct.error):
        return False


def _one(tags: dict[int, tuple[int, ...]], tag: int, default: int) -> int:
    values = tags.get(tag)
    return values[0] if values else default


def _end(tags: dict[int, tuple[int, ...]], offsets: int, lengths: int) -> int:
    pairs = zip(tags.get(offsets, ()), tags.get(lengths, ()), strict=False)
    return max((offset + length for offset, length in pairs), default=0)


def _order(data: bytes | bytearray | memoryview | mmap.mmap) -> str:
    return "<" if bytes(data[:2]) == b"II" else ">"


def _tags(data: bytes | bytearray | memoryview | mmap.mmap) -> dict[int, tuple[int, ...]]:
    order = _order(data)
    word, inline = _word(data)
    tags = {}
    for tag, kind, place in _entries(data):
        (length,) = struct.unpack_from(word, data, place - inline)
        layout = f"{order}{length}{_FORMATS[kind]}"
        if struct.calcsize(layout) > inline:
            (place,) = struct.unpack_from(word, data, place)
        tags[tag] = struct.unpack_from(layout, data, place)
    return tags


def _word(data: bytes | bytearray | memoryview | mmap.mmap) -> tuple[str, int]:
    """The format of an offset, and its bytes: BigTIFF has longer ones."""
    order = _order(data)
    (version,) = struct.unpack_from(order + "H", data, 2)
    return (order + "Q", 8) if version == 43 else (order + "I", 4)


def _entries(data: bytes | bytearray | memoryview | mmap.mmap) -> Iterator[tuple[int, int, int]]:
    """Of each entry of the first directory with whole numbers: tag, kind, and where its value or the offset stands."""
    order = _order(data)
    word, inline = _word(data)
    (start,) = struct.unpack_from(word, data, 8 if inline == 8 else 4)
    count_format = order + ("Q" if inline == 8 else "H")
    (count,) = struct.unpack_from(count_format, data, start)
    first, entry_bytes = start + struct.calcsize(count_format), 4 + 2 * inline
    for entry in range(first, first + entry_bytes * count, entry_bytes):
        tag, kind = struct.unpack_from(order + "HH", data, entry)
        if kind in _FORMATS:
            yield tag, kind, entry + 4 + inline
