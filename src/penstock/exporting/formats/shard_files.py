"""Shards that are written from front to back: what they are called, and where one ends."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from penstock.exporting.options import DEFAULT_SHARD_MB, ExportOptions
from penstock.exporting.pieces import Limits, Piece

# Few calls to the system, little to hold.
BUFFER_BYTES = 1 << 20


def shard_limits(options: ExportOptions) -> Limits:
    """As the user says; else by size."""
    if options.shard_samples is None and options.shard_mb is None:
        return Limits(byte_count=DEFAULT_SHARD_MB << 20)
    return Limits(options.shard_samples, None if options.shard_mb is None else options.shard_mb << 20)


def shard_name(piece: Piece, ending: str) -> str:
    """train-00000.tar; samples-00000.tar where there are no splits."""
    return f"{piece.split or 'samples'}-{piece.place:05d}.{ending}"


class ShardFile:
    """One shard that is being written."""

    def __init__(self, folder: Path, name: str, piece: Piece) -> None:
        self._name, self._piece = name, piece
        self._file = (folder / name).open("wb", buffering=BUFFER_BYTES)
        self._size = 0

    def write(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self._size += len(data)

    @property
    def size(self) -> int:
        return self._size

    def close(self) -> None:
        self._file.close()
        self._piece.note_file(self._name, self._size)

    def abandon(self) -> None:
        """Let go of it; what is still in the buffer may not fit on the disk, and is not wanted."""
        with suppress(OSError):
            self._file.close()
