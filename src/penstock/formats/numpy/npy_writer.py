""".npy files that grow: a header of fixed length first, rows appended, the number of rows filled in at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

HEADER_BYTES = 128
_MAGIC = b"\x93NUMPY\x01\x00"

Shape = tuple[int, ...]


def header(dtype: np.dtype[Any], shape: Shape) -> bytes:
    """The header of a .npy file, always of the same length."""
    text = repr({"descr": dtype.str, "fortran_order": False, "shape": shape}).encode("latin-1")
    room = HEADER_BYTES - len(_MAGIC) - 2
    return _MAGIC + room.to_bytes(2, "little") + text.ljust(room - 1) + b"\n"


def read_header(path: Path) -> tuple[np.dtype[Any], Shape]:
    """Type and shape as the header says them."""
    with path.open("rb") as file:
        np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    return dtype, shape


def finish_header(path: Path) -> None:
    """Write how many rows there are, which the size of the file tells."""
    dtype, (_, *row) = read_header(path)
    size = path.stat().st_size - HEADER_BYTES
    rows = size // (dtype.itemsize * int(np.prod(row, dtype=np.int64)))
    with path.open("r+b") as file:
        file.write(header(dtype, (rows, *row)))


class NpyFile:
    """One file that rows are appended to; its first row decides shape and type."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.row_shape: Shape | None = None
        if path.exists():
            _, (_, *row) = read_header(path)
            self.row_shape = tuple(row)
        self._file = path.open("ab", buffering=1 << 18)

    def append(self, rows: bytes | memoryview, dtype: np.dtype[Any], row_shape: Shape) -> None:
        if self.row_shape is None:
            self.row_shape = row_shape
            self._file.write(header(dtype, (0, *row_shape)))
        self._file.write(rows)

    def close(self) -> int:
        """Close it, and tell its size."""
        self._file.close()
        return self.path.stat().st_size

    def abandon(self) -> None:
        """Let go of it; what is still in the buffer may not fit on the disk, and is not wanted."""
        with suppress(OSError):
            self._file.close()


def write_texts(path: Path, texts: Callable[[], Iterable[str]]) -> None:
    """An array of texts, made in two passes: the longest decides the type."""
    count, longest = 0, 1
    for text in texts():
        count, longest = count + 1, max(longest, len(text))
    dtype = np.dtype(f"<U{longest}")
    with path.open("wb") as file:
        file.write(header(dtype, (count,)))
        for text in texts():
            file.write(text.encode("utf-32-le", "surrogatepass").ljust(dtype.itemsize, b"\0"))
