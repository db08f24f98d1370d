"""Advice to the system: which bytes of mapped files are needed soon, and which no longer."""

from __future__ import annotations

import ctypes
import functools
import mmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
