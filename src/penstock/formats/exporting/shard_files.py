"""Shards that are written from front to back: what they are called, and where one ends."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.formats.exporting.options import DEFAULT_SHARD_MB, ExportOptions
from penstock.formats.exporting.pieces import Limits, Piece

# Few calls to the system, after each of which the interpreter must be waited for; and no more pieces than may be given
# at once. Between other writers in a virtual machine, calls of 4 MB took three times as long as those of 1 MB, all of
# it in the system: probably in blocks of 2 MB that the machine had given back to its host.
HELD_BYTES = 1 << 20
HELD_PIECES = 512


def shard_limits(options: ExportOptions) -> Limits:
    """As the user says; else by size."""
    if options.shard_samples is None and options.shard_mb is None:
        return Limits(byte_count=DEFAULT_SHARD_MB << 20)
    return Limits(options.shard_samples, None if options.shard_mb is None else options.shard_mb << 20)


def shard_name(piece: Piece, ending: str) -> str:
    """train-00000.tar; samples-00000.tar where there are no splits."""
    return f"{piece.split or 'samples'}-{piece.place:05d}.{ending}"


class ShardFile:
    """One shard that is being written; pieces are handed to the system together, and copied by nobody else."""

    def __init__(self, folder: Path, name: str, piece: Piece) -> None:
        self._name, self._piece = name, piece
        self._file = (folder / name).open("wb", buffering=0)
        self._held: list[bytes | memoryview] = []
        self._held_bytes = 0
        self.size = 0

    def write(self, *pieces: bytes | memoryview) -> None:
        size = sum(map(len, pieces))
        self._held += pieces
        self._held_bytes += size
        self.size += size
        if self._held_bytes >= HELD_BYTES or len(self._held) >= HELD_PIECES:
            self._write_held()

    def _write_held(self) -> None:
        written = os.writev(self._file.fileno(), self._held) if hasattr(os, "writev") else 0
        if written < self._held_bytes:
            # A disk that is nearly full takes a part; the rest says why.
            left = memoryview(b"".join(self._held))[written:]
            while len(left):
                left = left[self._file.write(left) :]
        self._held, self._held_bytes = [], 0

    def close(self) -> None:
        self._write_held()
        self._file.close()
        self._piece.note_file(self._name, self.size)

    def abandon(self) -> None:
        self._file.close()
