"""tf.train.Example ↔ features by name, without TensorFlow or protobuf.

Example ─1─► Features ─1─► entries {1: name, 2: Feature}      Feature ─1─► list of bytes
                                                                     ─2─► list of float32
                                                                     ─3─► list of int64
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError

# A tag is the number of a field and the type that it has on the wire.
_COUNTED_1, _COUNTED_2 = b"\x0a", b"\x12"
_KIND_TAGS = {"bytes": b"\x0a", "floats": b"\x12", "integers": b"\x1a"}
# Fewer whole numbers than this are faster one by one than with numpy.
_FEW = 16


def encode_example(features: Mapping[str, Any]) -> bytes:
    """The bytes of a tf.train.Example. Equal features give equal bytes, whatever their order.

    A value is bytes, text, whole numbers or floats: one, a list, or an array, which is written row by row. Text is
    written in UTF-8, floats as float32. None and an empty list have no kind.
    """
    return _counted(_COUNTED_1, encode_entries(features, sorted(features)))


def start_around(earlier: bytes, name: str, size: int, later: bytes) -> bytes:
    """What stands before the bytes of a feature in an Example: the entries before it, and its own beginning.

    Entries are in the order of their names. So nobody copies an image to put something around it.
    """
    before = earlier + _start_of_bytes(name, size)
    return _COUNTED_1 + _varint(len(before) + size + len(later)) + before


def encode_entries(features: Mapping[str, Any], names: Sequence[str]) -> bytes:
    """The entries of some features, in this order."""
    return b"".join([_entry(name, features[name]) for name in names])


# Single entries, for whoever knows what a value is and writes many Examples.


def bytes_entry(name: str, data: bytes) -> bytes:
    return _start_of_bytes(name, len(data)) + data


def floats_entry(name: str, data: bytes) -> bytes:
    """Of float32 in the order of the wire, which is little endian."""
    return _start_of_packed(name, "floats", len(data)) + data


def integers_entry(name: str, varints: bytes) -> bytes:
    return _start_of_packed(name, "integers", len(varints)) + varints


def texts_entry(name: str, counted: bytes) -> bytes:
    """Of texts that each have their length before them; no kind where there is none."""
    return _start(name, "bytes" if counted else "", len(counted)) + counted


def _entry(name: str, value: Any) -> bytes:
    """An entry of the map."""
    if type(value) is int:
        return number_entry(name, value)
    if isinstance(value, (str, bytes, bytearray, memoryview)):  # a union of types would take three times as long
        return bytes_entry(name, value.encode() if isinstance(value, str) else bytes(value))
    kind, content = _encoded(name, value)
    return _start(name, kind, len(content)) + content


# Sizes and classes: the same numbers, and texts of the same length, come again and again.


@functools.lru_cache(maxsize=4096)
def number_entry(name: str, value: int) -> bytes:
    """Of one whole number."""
    kind, content = _encoded(name, value)
    return _start(name, kind, len(content)) + content


@functools.lru_cache(maxsize=4096)
def _start_of_bytes(name: str, size: int) -> bytes:
    """What stands before a single value of so many bytes."""
    counted = _COUNTED_1 + _varint(size)
    return _start(name, "bytes", len(counted) + size) + counted


@functools.lru_cache(maxsize=4096)
def _start_of_packed(name: str, kind: str, size: int) -> bytes:
    """What stands before numbers of so many bytes."""
    counted = _COUNTED_1 + _varint(size) if size else b""
    return _start(name, kind, len(counted) + size) + counted


def _start(name: str, kind: str, size: int) -> bytes:
    """What stands before a list of so many bytes; no kind where nothing says which."""
    feature = _KIND_TAGS[kind] + _varint(size) if kind else b""
    start = _named(name) + _COUNTED_2 + _varint(len(feature) + size) + feature
    return _COUNTED_1 + _varint(len(start) + size) + start


@functools.lru_cache(maxsize=1024)
def _named(name: str) -> bytes:
    return _counted(_COUNTED_1, name.encode())


def _encoded(name: str, value: Any) -> tuple[str, bytes]:
    """The kind of list, and its content; no kind where nothing says which."""
    if type(value) is int and -(2**63) <= value < 2**63:
        return "integers", _packed(varint(value))
    if value is None or (isinstance(value, list | tuple) and not value):
        return "", b""
    if isinstance(value, list | tuple) and isinstance(value[0], bytes | bytearray | memoryview | str):
        return "bytes", _bytes_list(name, value)
    return _encoded_array(name, np.asarray(value))


def _encoded_array(name: str, array: NDArray[Any]) -> tuple[str, bytes]:
    if array.dtype.kind in "bi" or (array.dtype.kind == "u" and (array.size == 0 or int(array.max()) < 2**63)):
        return "integers", _packed(_varints(array.ravel().astype(np.int64)))
    if array.dtype.kind == "f":
        return "floats", _packed(array.astype("<f4").tobytes())
    if array.dtype.kind in "SU":
        return "bytes", _bytes_list(name, array.ravel().tolist())
    raise OptionError(
        f"feature {name!r}: an Example holds bytes, text, float32 or int64; these are {array.dtype} values."
    )


def _bytes_list(name: str, values: Iterable[Any]) -> bytes:
    return b"".join(_counted(_COUNTED_1, _as_bytes(name, value)) for value in values)


def _as_bytes(name: str, value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise OptionError(f"feature {name!r}: a list of bytes or text also holds {type(value).__name__}.")


def _packed(numbers: bytes) -> bytes:
    return _counted(_COUNTED_1, numbers) if numbers else b""


@functools.lru_cache(maxsize=4096)
def varint(value: int) -> bytes:
    """A whole number of 64 bits, as lists have them."""
    return _varint(value & 0xFFFFFFFFFFFFFFFF)


@functools.lru_cache(maxsize=4096)
def counted_text(text: str) -> bytes:
    """A text with its length before it, as lists have them."""
    return _counted(_COUNTED_1, text.encode())


def _counted(tag: bytes, content: bytes) -> bytes:
    return tag + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Seven bits at a time, lowest first; the high bit of a byte says that more follow."""
    if value < len(_SHORT):
        return _SHORT[value]
    if value < 1 << 21:  # as most images have
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    pieces = bytearray()
    while value >= 0x80:
        pieces.append(value & 0x7F | 0x80)
        value >>= 7
    pieces.append(value)
    return bytes(pieces)


_SHORT = tuple(bytes((value,)) for value in range(0x80)) + tuple(
    bytes((value & 0x7F | 0x80, value >> 7)) for value in range(0x80, 0x4000)
)


def _varints(values: NDArray[np.int64]) -> bytes:
    unsigned = values.view(np.uint64)
    if len(values) < _FEW:
        return b"".join(map(_varint, unsigned.tolist()))
    shifted = unsigned[:, None] >> np.arange(0, 70, 7, dtype=np.uint64)
    is_used = shifted != 0
    is_used[:, 0] = True
    bytes_of = (shifted & np.uint64(0x7F)).astype(np.uint8)
    bytes_of[:, :-1] |= np.where(is_used[:, 1:], np.uint8(0x80), np.uint8(0))
    return bytes(bytes_of[is_used])
