"""A file of columns as mapped memory, of the size that it should have."""

from __future__ import annotations

from pathlib import Path

from penstock.errors import DataError, Problem
from penstock.storage.mapped import mapped_buffer


def mapped_bytes(path: Path, expected_bytes: int | None = None) -> memoryview:
    """The file, read-only; DataError where it has not the size that it should have."""
    try:
        size = path.stat().st_size
        if expected_bytes is not None and size != expected_bytes:
            what = f"it has {size:,} bytes and should have {expected_bytes:,}"
            raise DataError([Problem(str(path), None, what, "It was cut short or changed; copy or download it again")])
        return memoryview(mapped_buffer(str(path), size)).cast("B")
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError([Problem(str(path), None, f"it cannot be read: {reason}", "Check the path")]) from error
