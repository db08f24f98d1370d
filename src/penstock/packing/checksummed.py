"""A file whose checksum is known as soon as it is written, without reading it again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xxhash

# Smaller writes are collected: Arrow makes forty for each record batch, all but one of them tiny.
SMALL_BYTES = 65536

# Linux and macOS take at most 1,024 pieces at once.
PIECES_AT_ONCE = 1024


class ChecksummedFile:
    """A new file for pyarrow to write to. What was collected is written at the end, or lost with `abandon`."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)
        self._digest = xxhash.xxh3_64()
        self._small = bytearray()
        self._stands_for: dict[int, Sequence[Any]] = {}
        self.bytes = 0

    @property
    def closed(self) -> bool:
        return self._file.closed

    def tell(self) -> int:
        return self.bytes

    def write(self, data: Any) -> int:
        """Write all of a buffer, or of what it stands for."""
        view = memoryview(data).cast("B")
        self.bytes += len(view)
        pieces = self._stands_for.pop(getattr(data, "address", 0), None)
        if pieces is not None:
            self.flush()
            self._put_pieces(pieces)
        elif len(view) < SMALL_BYTES:
            self._small += view
        else:
            self.flush()
            self._put(view)
        if len(self._small) >= SMALL_BYTES:
            self.flush()
        return len(view)

    def instead_of(self, address: int, pieces: Sequence[Any]) -> None:
        """When the buffer at this address comes, write these pieces of the same length, which saves joining them."""
        self._stands_for[address] = pieces

    @property
    def waits(self) -> bool:
        """Whether something is still to be written instead of a buffer that did not come."""
        return bool(self._stands_for)

    def flush(self) -> None:
        if self._small:
            self._put(memoryview(self._small))
            self._small = bytearray()

    def _put(self, view: memoryview) -> None:
        self._digest.update(view)
        self._put_rest(view, 0)

    def _put_rest(self, piece: Any, written: int) -> None:
        while written < len(piece):  # a disk that is nearly full takes a part
            written += self._file.write(memoryview(piece)[written:])

    def _put_pieces(self, pieces: Sequence[Any]) -> None:
        for piece in pieces:
            self._digest.update(piece)
        for start in range(0, len(pieces), PIECES_AT_ONCE):
            some = pieces[start : start + PIECES_AT_ONCE]
            # Without writev, and after a part that a nearly full disk took, each is written by itself.
            written = os.writev(self._file.fileno(), some) if hasattr(os, "writev") else 0
            for piece in some:
                self._put_rest(piece, min(written, len(piece)))
                written -= min(written, len(piece))

    def close(self) -> None:
        if not self.closed:
            self.flush()
            self._file.close()

    def abandon(self) -> None:
        self._file.close()

    def checksum(self) -> str:
        """As `file_checksum` finds it."""
        return self._digest.hexdigest()
