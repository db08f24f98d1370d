"""tf.train.Example ↔ features by name, without TensorFlow or protobuf.

Example ─1─► Features ─1─► entries {1: name, 2: Feature}      Feature ─1─► list of bytes
                                                                     ─2─► list of float32
                                                                     ─3─► list of int64
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import RecipeError

# A tag is the number of a field and the type that it has on the wire.
_COUNTED_1, _COUNTED_2 = b"\x0a", b"\x12"
_KIND_TAGS = {"bytes": b"\x0a", "floats": b"\x12", "integers": b"\x1a"}
# Fewer whole numbers than this are faster one by one than with numpy.
_FEW = 16
# Content below this size is joined with what stands before it: pieces cost more than copying it.
_SMALL = 4096


def encode_example(features: Mapping[str, Any]) -> bytes:
    """The bytes of a tf.train.Example; see `example_pieces`."""
    return b"".join(example_pieces(features))


def example_pieces(features: Mapping[str, Any]) -> list[Any]:
    """The bytes of a tf.train.Example in pieces, so that nobody copies an image to put something before it.

    Equal features give equal bytes, whatever their order.

    A value is bytes, text, whole numbers or floats: one, a list, or an array, which is written row by row. Text is
    written in UTF-8, floats as float32. None and an empty list have no kind.
    """
    pieces: list[Any] = [b""]
    for name in sorted(features):
        value = features[name]
        # Sizes, formats, classes: the same ones come again and again.
        known = type(value) is int or (type(value) is str and len(value) < _SMALL)
        pieces += _known_entry(name, value) if known else _entry(name, value)
    pieces[0] = _COUNTED_1 + _varint(sum(map(len, pieces)))
    return pieces


def _entry(name: str, value: Any) -> tuple[Any, ...]:
    """An entry of the map: what stands before its content, and the content."""
    kind, content = _encoded(name, value)
    feature = _KIND_TAGS[kind] + _varint(sum(map(len, content))) if kind else b""
    length = len(feature) + sum(map(len, content))
    start = _named(name) + _COUNTED_2 + _varint(length) + feature
    whole = _COUNTED_1 + _varint(len(start) - len(feature) + length) + start
    if length < _SMALL:
        return (b"".join((whole, *content)),)
    return whole, *content


@functools.lru_cache(maxsize=4096)
def _known_entry(name: str, value: int | str) -> tuple[Any, ...]:
    return _entry(name, value)


@functools.lru_cache(maxsize=1024)
def _named(name: str) -> bytes:
    return _counted(_COUNTED_1, name.encode())


def _encoded(name: str, value: Any) -> tuple[str, tuple[Any, ...]]:
    """The kind of list, and its content in pieces; no kind where nothing says which."""
    if isinstance(value, bytes | bytearray | memoryview | str):
        data = value.encode() if isinstance(value, str) else _flat(value)
        return "bytes", (_COUNTED_1 + _varint(len(data)), data)
    if type(value) is int and -(2**63) <= value < 2**63:
        return "integers", (_packed(_varint(value & 0xFFFFFFFFFFFFFFFF)),)
    if value is None or (isinstance(value, list | tuple) and not value):
        return "", ()
    if isinstance(value, list | tuple) and isinstance(value[0], bytes | bytearray | memoryview | str):
        return "bytes", (_bytes_list(name, value),)
    kind, content = _encoded_array(name, np.asarray(value))
    return kind, (content,)


def _flat(data: bytes | bytearray | memoryview) -> Any:
    """Bytes whose length is counted in bytes."""
    return data.cast("B") if isinstance(data, memoryview) and data.contiguous else bytes(data)


def _encoded_array(name: str, array: NDArray[Any]) -> tuple[str, bytes]:
    if array.dtype.kind in "bi" or (array.dtype.kind == "u" and (array.size == 0 or int(array.max()) < 2**63)):
        return "integers", _packed(_varints(array.ravel().astype(np.int64)))
    if array.dtype.kind == "f":
        return "floats", _packed(array.astype("<f4").tobytes())
    if array.dtype.kind in "SU":
        return "bytes", _bytes_list(name, array.ravel().tolist())
    raise RecipeError(
        f"feature {name!r}: an Example holds bytes, text, float32 or int64; these are {array.dtype} values."
    )


def _bytes_list(name: str, values: Iterable[Any]) -> bytes:
    return b"".join(_counted(_COUNTED_1, _as_bytes(name, value)) for value in values)


def _as_bytes(name: str, value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise RecipeError(f"feature {name!r}: a list of bytes or text also holds {type(value).__name__}.")


def _packed(numbers: bytes) -> bytes:
    return _counted(_COUNTED_1, numbers) if numbers else b""


def _counted(tag: bytes, content: bytes) -> bytes:
    return tag + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Seven bits at a time, lowest first; the high bit of a byte says that more follow."""
    if value < len(_SHORT):
        return _SHORT[value]
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
