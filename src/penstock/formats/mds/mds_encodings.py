"""How MDS writes the value of a column.

int        8 bytes, little-endian               str, json, str_int, str_float   UTF-8
jpeg, png  the image file                       bytes                           as they are
uint8 … float64   one number                    ndarray[:dtype[:shape]]         [dtype] [shape] values, below
pil        width, height, length of the mode (4 bytes each), mode, pixels
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.formats.columns.tables import Holds

NUMBERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
_DTYPE_CODES = {8: "uint8", 9: "int8", 16: "uint16", 17: "int16", 18: "float16", 32: "uint32", 33: "int32"}
_DTYPE_CODES |= {34: "float32", 64: "uint64", 65: "int64", 66: "float64"}
_PIL_CHANNELS = {"L": 1, "RGB": 3, "RGBA": 4}
_UNSAFE = "it holds {}, which is read by running code from the file"


@dataclass(frozen=True)
class Encoding:
    """What a column holds, and how its bytes become a value. `dtype` is of numbers that may be taken all at once."""

    holds: Holds
    decode: Callable[[memoryview], Any]
    dtype: str = ""


def encoding_of(name: str, first: memoryview | None) -> Encoding:
    """The encoding of a name in index.json; `first` is a value, which tells the type of arrays that vary."""
    kind, _, settings = name.partition(":")
    if kind == "int" or kind in NUMBERS:
        dtype = "int64" if kind == "int" else kind
        return Encoding(Holds("array", dtype), lambda data: np.frombuffer(data, dtype)[0], dtype)
    if kind in ("jpeg", "png"):
        return Encoding(Holds("bytes", is_image=True), lambda data: data)
    if kind == "bytes":
        return Encoding(Holds("bytes"), lambda data: data)
    if kind in ("str", "json"):
        return Encoding(Holds("text"), lambda data: str(data, "utf-8"))
    if kind == "str_int":
        return Encoding(Holds("array", "int64"), lambda data: np.int64(str(data, "utf-8")))
    if kind == "str_float":
        return Encoding(Holds("array", "float64"), lambda data: np.float64(str(data, "utf-8")))
    if kind == "ndarray":
        return _array_encoding(settings, first)
    if kind == "pil":
        return _pil_encoding(first)
    note = _UNSAFE.format("pickled objects") if kind == "pkl" else f"its encoding {name!r} is not read"
    return Encoding(Holds("other", note=note), lambda data: data)


def _array_encoding(settings: str, first: memoryview | None) -> Encoding:
    dtype, _, sides = settings.partition(":")
    shape = tuple(int(side) for side in sides.split(",")) if sides else None

    def decode(data: memoryview) -> NDArray[Any]:
        return _array(data, dtype, shape)

    if shape is not None and dtype:
        return Encoding(Holds("array", dtype, shape), decode, dtype)
    if first is None:
        return Encoding(Holds("other", note="there is no row that tells its type"), decode)
    example = decode(first)
    free: tuple[int | None, ...] = (None,) * example.ndim
    return Encoding(Holds("array", dtype or example.dtype.name, free if shape is None else shape), decode)


def _array(data: memoryview, dtype: str, shape: tuple[int, ...] | None) -> NDArray[Any]:
    start = 0
    if not dtype:
        if data[0] not in _DTYPE_CODES:
            raise ValueError(f"its array has the unknown type {data[0]}")
        dtype, start = _DTYPE_CODES[data[0]], 1
    if shape is None:
        sides, width = data[start] >> 2, 1 << (data[start] & 3)
        shape = tuple(np.frombuffer(data, f"<u{width}", sides, start + 1).tolist())
        start += 1 + sides * width
    return np.frombuffer(data[start:], np.dtype(dtype).newbyteorder("<")).reshape(shape)


def _pil_encoding(first: memoryview | None) -> Encoding:
    mode = _pil_mode(first)[2] if first is not None else ""
    if mode not in _PIL_CHANNELS:
        note = f"it holds raw images of mode {mode or 'unknown'}; L, RGB and RGBA are read"
        return Encoding(Holds("other", note=note), lambda data: data)
    holds = Holds("array", "uint8", (None, None, _PIL_CHANNELS[mode]), is_image=True)
    return Encoding(holds, lambda data: _pil_pixels(data, mode))


def _pil_mode(data: memoryview) -> tuple[int, int, str, int]:
    """Width, height, mode, and where the pixels begin."""
    width, height, length = np.frombuffer(data, "<u4", 3).tolist()
    return width, height, str(data[12 : 12 + length], "utf-8", "replace"), 12 + length


def _pil_pixels(data: memoryview, expected: str) -> NDArray[np.uint8]:
    width, height, mode, start = _pil_mode(data)
    if mode != expected:
        raise ValueError(f"its mode is {mode}, and {expected} in the first row")
    return np.frombuffer(data[start:], np.uint8).reshape(height, width, _PIL_CHANNELS[mode])
