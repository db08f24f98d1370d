"""NumPy's own files: headers that are checked against what is there before memory is taken; nothing is unpickled."""

from __future__ import annotations

import io
import math
import struct
import tokenize
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

Header = tuple[tuple[int, ...], bool, np.dtype[Any]]

# What numpy raises on a header that is none; it is read as a literal of Python.
HEADER_DAMAGE = (
    *(ValueError, SyntaxError, TypeError, KeyError, EOFError, OverflowError, RecursionError, MemoryError),
    *(tokenize.TokenError, struct.error),
)


def read_npy_header(file: IO[bytes], size: int) -> Header:
    """Shape, order and type of an array in a file of `size` bytes from here on; ValueError where it can't be so."""
    begin = file.tell()
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, is_fortran, dtype = read(file)
    except HEADER_DAMAGE as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise ValueError(f"its npy header cannot be read: {reason}") from None
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded")
    if min(shape, default=0) < 0:
        raise ValueError(f"its npy header says a shape of {shape}")
    declared, there = math.prod(shape) * dtype.itemsize, size - (file.tell() - begin)
    if declared > there:
        raise ValueError(f"its npy header says {declared:,} bytes, and there are {there:,}")
    return shape, is_fortran, dtype


def load_npy(data: bytes | memoryview) -> NDArray[Any]:
    """The array in the bytes of a .npy file; ValueError where it is none."""
    file = io.BytesIO(data)
    shape, is_fortran, dtype = read_npy_header(file, len(data))
    flat = np.frombuffer(data, dtype, math.prod(shape), file.tell())
    array: NDArray[Any] = flat.reshape(shape, order="F" if is_fortran else "C").copy(order="K")
    return array
