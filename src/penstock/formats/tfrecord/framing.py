"""TFRecord files: records one after another, each with checksums of its length and of its payload.

    8 bytes length │ 4 bytes masked crc of the length │ payload │ 4 bytes masked crc of the payload      little endian

The checksum is CRC-32C. The C extension works it out at the speed of memory; without it a table in Python does.
"""

from __future__ import annotations

import functools
import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.codecs import kernel
from penstock.codecs.headers import UnreadableImage

HEAD_BYTES = 12
TAIL_BYTES = 4

_POLYNOMIAL = 0x82F63B78  # Castagnoli, lowest bit first
_MASK = 0xA282EAD8
_END, _FULL, _CUT, _DAMAGED = range(4)  # as in c/records.h
_ROOM = 1 << 16


class UnreadableRecord(UnreadableImage):
    """The bytes are not whole records, or a record is not a tf.train.Example; says what and at which byte."""


def masked_crc32c(data: Any) -> int:
    """The checksum that TFRecords keep of `data` (bytes or a buffer)."""
    native = kernel.native_extension()
    if native is not None:
        return int(native.masked_crc32c(data))
    crc = _crc32c(bytes(data))
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF


def frame(payload: Any) -> bytes:
    """A payload as a record, ready to be written to a file."""
    ((head, tail),) = ends_of_records((b"", payload, b""))
    return b"".join((head, payload, tail))


def ends_of_records(pieces: tuple[Any, ...]) -> list[tuple[bytes, bytes]]:
    """What records have before and behind their payloads; three pieces are the payload of each, copied by nobody."""
    native = kernel.native_extension()
    if native is not None:
        found: list[tuple[bytes, bytes]] = native.frame(pieces)
        return found
    return [_ends_of_record(b"".join(pieces[start : start + 3])) for start in range(0, len(pieces), 3)]


def _ends_of_record(payload: bytes) -> tuple[bytes, bytes]:
    length = struct.pack("<Q", len(payload))
    return length + _packed_crc(length), _packed_crc(payload)


def _packed_crc(data: Any) -> bytes:
    return struct.pack("<I", masked_crc32c(data))


@functools.cache
def _table() -> tuple[int, ...]:
    return tuple(functools.reduce(lambda crc, _: crc >> 1 ^ (_POLYNOMIAL * (crc & 1)), range(8), n) for n in range(256))


def _crc32c(data: bytes) -> int:
    table, crc = _table(), 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


# Finding records in a whole file


class Scanned(NamedTuple):
    """Offset and length of every payload up to the end or to what is damaged, n×2; and what is, where it is."""

    places: NDArray[np.int64]
    damage: str
    damage_offset: int


def scan(data: Any) -> Scanned:
    """Find the records of a whole file; the checksum of every length is checked, payloads are not touched."""
    native = kernel.native_extension()
    step = _scan_in_python if native is None else native.scan_records
    position, why, pieces = 0, _FULL, []
    while why == _FULL:
        places = np.empty((_ROOM, 2), np.int64)
        found, position, why = step(data, position, places)
        pieces.append(places[:found])
    return Scanned(np.concatenate(pieces), _damage(data, position, why), position)


def _damage(data: Any, position: int, why: int) -> str:
    if why == _DAMAGED:
        return "the checksum of a length does not match"
    if why == _END:
        return ""
    left = len(data) - position
    if left < HEAD_BYTES:
        return f"{left} bytes are left, and a record begins with {HEAD_BYTES}"
    (length,) = struct.unpack("<Q", data[position : position + 8])
    return f"a record of {length:,} bytes begins here, and {max(left - HEAD_BYTES - TAIL_BYTES, 0):,} are left for it"


def _scan_in_python(data: Any, position: int, places: NDArray[np.int64]) -> tuple[int, int, int]:
    size = len(data)
    for found in range(len(places)):
        if position == size:
            return found, position, _END
        if size - position < HEAD_BYTES:
            return found, position, _CUT
        length, crc = struct.unpack("<QI", data[position : position + HEAD_BYTES])
        if masked_crc32c(data[position : position + 8]) != crc:
            return found, position, _DAMAGED
        if length > size - position - HEAD_BYTES - TAIL_BYTES:
            return found, position, _CUT
        places[found] = position + HEAD_BYTES, length
        position += HEAD_BYTES + length + TAIL_BYTES
    return len(places), position, _FULL


def are_whole(buffers: tuple[Any, ...], places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each payload (n×3: number of the buffer, offset, length) has its checksum behind it; without the GIL."""
    native = kernel.native_extension()
    if native is None:
        return np.array([is_whole(buffers[number], *place) for number, *place in places.tolist()], bool)
    answer = np.empty(len(places), np.bool_)
    native.check_records(buffers, np.ascontiguousarray(places, np.int64), answer)
    return answer


def is_whole(data: Any, offset: int, length: int) -> bool:
    """Whether one payload has its checksum behind it."""
    end = offset + length
    (crc,) = struct.unpack("<I", data[end : end + TAIL_BYTES])
    return masked_crc32c(data[offset:end]) == int(crc)
