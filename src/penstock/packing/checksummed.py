"""A file whose checksum is known as soon as it is written, without reading it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xxhash

# Smaller writes are collected: Arrow makes forty for each record batch, all but one of them tiny.
SMALL_BYTES = 65536


class ChecksummedFile:
    """A new file for pyarrow to write to. What was collected is written at the end, or lost with `abandon`."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)
        self._digest = xxhash.xxh3_64()
        self._small = bytearray()
        self.bytes = 0

    @property
    def closed(self) -> bool:
        return self._file.closed

    def tell(self) -> int:
        return self.bytes

    def write(self, data: Any) -> int:
        """Write all of a buffer."""
        view = memoryview(data).cast("B")
        self.bytes += len(view)
        if len(view) < SMALL_BYTES:
            self._small += view
        else:
            self.flush()
            self._put(view)
        if len(self._small) >= SMALL_BYTES:
            self.flush()
        return len(view)

    def flush(self) -> None:
        if self._small:
            self._put(memoryview(self._small))
            self._small = bytearray()

    def _put(self, view: memoryview) -> None:
        self._digest.update(view)
        written = 0
        while written < len(view):  # a disk that is nearly full takes a part
            written += self._file.write(view[written:])

    def close(self) -> None:
        if not self.closed:
            self.flush()
            self._file.close()

    def abandon(self) -> None:
        self._file.close()

    def checksum(self) -> str:
        """As `file_checksum` finds it."""
        return self._digest.hexdigest()
