"""A whole file as mapped memory."""

from __future__ import annotations

from pathlib import Path

from penstock.errors import DataError, Problem


def mapped_bytes(path: Path, expected_bytes: int | None = None) -> memoryview:
    """The file, read-only; its descriptor is closed again at once, since a dataset may have thousands of files.

    A page beyond the end of a mapped file ends the process with SIGBUS: sizes are compared first.
    """
    import pyarrow as pa

    try:
        size = path.stat().st_size
        if expected_bytes is not None and size != expected_bytes:
            what = f"it has {size:,} bytes and should have {expected_bytes:,}"
            raise DataError([Problem(str(path), None, what, "It was cut short or changed; copy or download it again")])
        if not size:
            return memoryview(b"")
        with pa.memory_map(str(path)) as mapped:
            return memoryview(mapped.read_buffer()).cast("B")
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError([Problem(str(path), None, f"it cannot be read: {reason}", "Check the path")]) from error
