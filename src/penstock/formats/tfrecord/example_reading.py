"""Reading tf.train.Examples: where features are in many records at once, and the values of one.

The walk is written twice with the same meaning: `c/records.c`, and here for where the extension is absent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.codecs import kernel
from penstock.formats.tfrecord.framing import UnreadableRecord

ABSENT, BYTES, FLOATS, INTEGERS, EMPTY = range(5)
KIND_NAMES = {ABSENT: "absent", BYTES: "bytes", FLOATS: "floats", INTEGERS: "whole numbers", EMPTY: "empty"}
Values = list[bytes] | NDArray[Any]

_VARINT, _FIXED64, _COUNTED, _FIXED32 = 0, 1, 2, 5
_COLUMNS = 5  # of a Place


class Place(NamedTuple):
    """One feature: its kind, where its first bytes value or its packed numbers are, how many values, the first one.

    `size` is −1 where numbers do not stand in one stretch; `first` is only known of whole numbers.
    """

    kind: int
    offset: int
    size: int
    count: int  # type: ignore[assignment]  # shadows tuple.count, which nobody calls
    first: int


def find_features(
    data: Any, places: NDArray[np.int64], names: tuple[str, ...]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """For each payload and name a `Place`, n×m×5; and whether each payload is an Example at all."""
    found = np.zeros((len(places), len(names), _COLUMNS), np.int64)
    is_example = np.zeros(len(places), np.bool_)
    texts = tuple(name.encode() for name in names)
    native = kernel.native_extension()
    if native is not None:
        native.find_features(data, np.ascontiguousarray(places, np.int64), texts, found, is_example)
        return found, is_example
    view = memoryview(data)
    for row, (offset, length) in enumerate(places.tolist()):
        try:
            _find_in(view, offset, offset + length, texts, found[row])
        except UnreadableRecord:
            continue
        is_example[row] = True
    return found, is_example


def _find_in(view: memoryview, at: int, end: int, names: tuple[bytes, ...], out: NDArray[np.int64]) -> None:
    for name, start, stop in _entries(view, at, end):
        if name in names:
            out[names.index(name)] = np.array(_place(view, start, stop), np.int64)


def values_at(view: memoryview, payload: tuple[int, int], name: str, place: Place) -> Values:
    """The values of a feature that `find_features` found in a payload (offset, length)."""
    if place.kind == INTEGERS and place.size >= 0:
        return _whole_numbers(view[place.offset : place.offset + place.size])
    if place.kind == FLOATS and place.size >= 0:
        return np.frombuffer(view, "<f4", place.size // 4, place.offset).astype(np.float32)
    if place.kind == BYTES and place.count == 1:
        return [bytes(view[place.offset : place.offset + place.size])]
    offset, length = payload
    return decode_example(view[offset : offset + length]).get(name, [])


def decode_example(payload: Any) -> dict[str, Values]:
    """Every feature of a tf.train.Example: a list of bytes, float32 or int64 values; one without a kind is empty."""
    view = memoryview(payload).cast("B")
    return {
        name.decode("utf-8", "replace"): _values(view, start, stop)
        for name, start, stop in _entries(view, 0, len(view))
    }


# The wire format


def _fields(view: memoryview, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Number, type, start and end of every field of a message."""
    while at < end:
        tag, at = _varint(view, at, end)
        kind = tag & 7
        if kind == _VARINT:
            stop = _varint(view, at, end)[1]
        elif kind == _COUNTED:
            size, at = _varint(view, at, end)
            stop = at + size
        elif kind in (_FIXED32, _FIXED64):
            stop = at + (4 if kind == _FIXED32 else 8)
        else:
            raise UnreadableRecord(f"type {kind} at byte {at} is unknown: this is not a tf.train.Example")
        if stop > end:
            raise UnreadableRecord(f"a field at byte {at} is cut short: this is not a tf.train.Example")
        yield tag >> 3, kind, at, stop
        at = stop


def _varint(view: memoryview, at: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            break
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
    raise UnreadableRecord(f"a number at byte {at} does not end: this is not a tf.train.Example")


def _entries(view: memoryview, at: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Name, start and end of every Feature."""
    for number, kind, start, stop in _fields(view, at, end):
        if (number, kind) != (1, _COUNTED):
            continue
        for inner, inner_kind, entry, entry_stop in _fields(view, start, stop):
            if (inner, inner_kind) == (1, _COUNTED):
                yield _entry(view, entry, entry_stop)


def _entry(view: memoryview, at: int, end: int) -> tuple[bytes, int, int]:
    name, feature = b"", (at, at)
    for number, kind, start, stop in _fields(view, at, end):
        if (number, kind) == (1, _COUNTED):
            name = bytes(view[start:stop])
        elif (number, kind) == (2, _COUNTED):
            feature = start, stop
    return name, *feature


class _Pieces(NamedTuple):
    """The values of a Feature as they stand: bytes one by one, numbers in stretches, packed or alone."""

    kind: int
    pieces: list[tuple[int, int, bool]]


def _pieces(view: memoryview, at: int, end: int) -> _Pieces:
    """The last kind counts, and lists of one kind are joined, as in protobuf."""
    found = _Pieces(EMPTY, [])
    alone = {BYTES: _COUNTED, FLOATS: _FIXED32, INTEGERS: _VARINT}
    for number, kind, start, stop in _fields(view, at, end):
        if number not in alone or kind != _COUNTED:
            continue
        if found.kind != number:
            found = _Pieces(number, [])
        for inner, inner_kind, value, value_stop in _fields(view, start, stop):
            if inner == 1 and inner_kind in (_COUNTED, alone[number]):
                found.pieces.append((value, value_stop, inner_kind == _COUNTED))
    return found


def _values(view: memoryview, at: int, end: int) -> Values:
    kind, pieces = _pieces(view, at, end)
    if kind in (BYTES, EMPTY):
        return [bytes(view[start:stop]) for start, stop, _ in pieces]
    joined = b"".join(view[start:stop] for start, stop, _ in pieces)
    return _whole_numbers(joined) if kind == INTEGERS else _floats(joined)


def _place(view: memoryview, at: int, end: int) -> Place:
    kind, pieces = _pieces(view, at, end)
    if not pieces:
        return Place(kind, 0, 0, 0, 0)
    start, stop, is_packed = pieces[0]
    if kind == BYTES:
        return Place(kind, start, stop - start, len(pieces), 0)
    numbers = np.asarray(_values(view, at, end))
    first = int(numbers[0]) if kind == INTEGERS and len(numbers) else 0
    return Place(kind, start, stop - start if is_packed and len(pieces) == 1 else -1, len(numbers), first)


def _floats(packed: Any) -> NDArray[np.float32]:
    if len(packed) % 4:
        raise UnreadableRecord("floats are cut short: this is not a tf.train.Example")
    return np.frombuffer(packed, "<f4").astype(np.float32)


def _whole_numbers(packed: Any) -> NDArray[np.int64]:
    """Numbers of seven bits a byte, all at once: each ends at a byte without its high bit."""
    octets = np.frombuffer(packed, np.uint8)
    ends = np.flatnonzero(octets < 0x80)
    if len(octets) and (not len(ends) or ends[-1] != len(octets) - 1):
        raise UnreadableRecord("whole numbers are cut short: this is not a tf.train.Example")
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    lengths = ends - starts + 1
    if len(lengths) and lengths.max() > 10:
        raise UnreadableRecord("a whole number has more than 64 bits: this is not a tf.train.Example")
    if not len(ends):
        return np.zeros(0, np.int64)
    shifts = 7 * (np.arange(len(octets)) - np.repeat(starts, lengths))
    bits = (octets & 0x7F).astype(np.uint64) << shifts.astype(np.uint64)
    return np.bitwise_or.reduceat(bits, starts).view(np.int64)
