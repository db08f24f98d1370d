"""Files as mapped memory, what happens when such a file loses bytes, and advice to the system about them.

A page that a mapped file no longer has would end the process with SIGBUS, in whichever thread touches it. The extension
`_mapping` puts zeros there instead and notes that the file is lost. So reading costs nothing more, and whoever hands on
what was made of mapped bytes (a batch, a sample, a shard) calls `refuse_lost_files` before.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import math
import mmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, Problem
from penstock.storage.plain_files import refuse_special_mode


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
        state = Path(path).stat()
        refuse_special_mode(state.st_mode, path)
        size = state.st_size
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


# Advice to the system: which bytes of mapped files are needed soon, and which no longer.


Numbers = NDArray[np.int64]
PAGE = mmap.PAGESIZE
SOON = getattr(mmap, "MADV_WILLNEED", None)
DONE = getattr(mmap, "MADV_DONTNEED", None)


class Mapped(NamedTuple):
    """A mapping: where it begins, and how many bytes it has."""

    address: int
    size: int


def stretches(starts: Numbers, lengths: Numbers, *, inner: bool = False) -> Numbers:
    """Whole pages that hold these bytes, n×2 (start, end), merged where they touch.

    With `inner` only pages that hold nothing else: what lies beside a sample may still be needed.
    """
    ends = starts + lengths
    if inner:
        first, last = -(-starts // PAGE) * PAGE, ends // PAGE * PAGE
    else:
        first, last = starts // PAGE * PAGE, -(-ends // PAGE) * PAGE
    keep = (first < last) & (lengths > 0)
    if not keep.any():
        return np.zeros((0, 2), np.int64)
    order = np.argsort(first[keep], kind="stable")
    first, last = first[keep][order], last[keep][order]
    reached = np.maximum.accumulate(last)
    is_new = np.concatenate([[True], first[1:] > reached[:-1]])
    ends_at = np.append(np.flatnonzero(is_new)[1:], len(first)) - 1
    return np.stack([first[is_new], reached[ends_at]], axis=1)


def advise(memory: Mapped, pages: Numbers, advice: int | None) -> int:
    """Give one advice for these pages of a mapping; the bytes that it was given for.

    Pages outside are left out: what lies there is not ours, and an advice may empty it.
    """
    library = _library()
    if library is None or advice is None:
        return 0
    pages, address = np.clip(pages, 0, -(-memory.size // PAGE) * PAGE), memory.address
    pages = pages[pages[:, 0] < pages[:, 1]]
    for start, end in pages.tolist():
        # An advice may be refused (a locked mapping, another kernel): it is only an advice.
        library.madvise(ctypes.c_void_p(address + start), ctypes.c_size_t(end - start), advice)
    return int((pages[:, 1] - pages[:, 0]).sum())


def resident_pages(memory: Mapped, starts: Numbers) -> NDArray[np.bool_] | None:
    """Whether the page at each of these bytes is in memory; None where the system does not tell."""
    address = memory.address
    starts = np.clip(starts, 0, max(memory.size - 1, 0))
    library = _library()
    if library is None or not hasattr(library, "mincore"):
        return None
    answer = ctypes.c_ubyte()
    found = []
    for start in (starts // PAGE * PAGE).tolist():
        if library.mincore(ctypes.c_void_p(address + start), ctypes.c_size_t(1), ctypes.byref(answer)) != 0:
            return None
        found.append(bool(answer.value & 1))
    return np.array(found, np.bool_)


@functools.cache
def _library() -> Any:
    """The C library, where it has madvise."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    except (OSError, TypeError, AttributeError):  # Windows
        return None
    return library
