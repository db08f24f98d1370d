"""A whole file as mapped memory."""

from __future__ import annotations

from typing import Any


def mapped_buffer(path: str, size: int) -> Any:
    """A file of this size as a read-only pyarrow buffer; empty files, which cannot be mapped, too.

    Its descriptor is closed again at once, since a dataset may have thousands of files. A page beyond the end of a
    mapped file ends the process with SIGBUS: whoever asks has just looked how large the file is.
    """
    import pyarrow as pa

    if size == 0:
        return pa.py_buffer(b"")
    with pa.memory_map(path) as mapped:
        return mapped.read_buffer()
