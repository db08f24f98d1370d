"""Files as mapped memory, and what happens when such a file loses bytes while it is used.

A page that a mapped file no longer has would end the process with SIGBUS, in whichever thread touches it. The extension
`_mapping` puts zeros there instead and notes that the file is lost. So reading costs nothing more, and whoever hands on
what was made of mapped bytes (a batch, a sample, a shard) calls `refuse_lost_files` before.
"""

from __future__ import annotations

import errno
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, Problem


def _load() -> Any:
    """The extension; None on Windows or without a compiler, and then a file that is cut short ends the process."""
    try:
        from penstock.storage import _mapping
    except ImportError:
        return None
    return _mapping


GUARD = _load()


def mapped_buffer(path: str, size: int) -> Any:
    """A file of this size as a read-only pyarrow buffer; empty files, which cannot be mapped, too."""
    import pyarrow as pa

    return pa.py_buffer(mapped_memory(path, size))


def mapped_memory(path: str | Path, size: int | None = None) -> Any:
    """The same as an object with a buffer. No descriptor stays open: a dataset may have thousands of files."""
    if size is None:
        size = Path(path).stat().st_size
    if size == 0:
        return b""
    if GUARD is None:
        import pyarrow as pa

        with pa.memory_map(str(path)) as file:
            return file.read_buffer()
    try:
        return GUARD.map_file(str(path), size)
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise DataError([Problem(str(path), None, f"it no longer has {size:,} bytes", "Open it again")]) from None
        raise


def mapped_array(
    path: str | Path, dtype: Any, shape: tuple[int, ...], offset: int = 0, *, is_fortran: bool = False
) -> NDArray[Any]:
    """A part of a file as an array; ValueError where the file is too short for it."""
    plain, count = np.dtype(dtype), math.prod(shape)
    if count == 0:
        return np.zeros(shape, plain)
    values = np.frombuffer(mapped_memory(path), plain, count, offset)
    return values.reshape(shape, order="F" if is_fortran else "C")


def guarded(array: np.memmap[Any, Any]) -> NDArray[Any]:
    """What NumPy mapped, as an array that outlives the bytes of its file."""
    is_fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    return mapped_array(str(array.filename), array.dtype, array.shape, array.offset, is_fortran=is_fortran)


def refuse_lost_files() -> None:
    """Raise DataError if a file that is still mapped lost bytes: what was read of it may be zeros."""
    if GUARD is not None and GUARD.lost_count():
        what = "it was cut short, or its disk failed, while it was being read"
        remedy = "Let nothing write to it in the meantime: restore it, and open it again"
        raise DataError([Problem(path, None, what, remedy) for path in sorted(set(GUARD.lost_files()))])
