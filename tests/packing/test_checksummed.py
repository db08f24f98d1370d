"""A file's checksum is that of its bytes, however they came to be in it."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.packing.checksummed import PIECES_AT_ONCE, SMALL_BYTES, ChecksummedFile
from penstock.packing.shards import file_checksum


def finished(file: ChecksummedFile, path: Path) -> bytes:
    file.close()
    content = path.read_bytes()
    assert file.bytes == len(content)
    assert file.checksum() == file_checksum(path)
    return content


def test_small_and_large_writes_keep_their_order(tmp_path: Path) -> None:
    file = ChecksummedFile(tmp_path / "file")
    pieces = [b"a", b"b" * SMALL_BYTES, b"c" * 3, b"d" * (2 * SMALL_BYTES), b"e"]
    for piece in pieces:
        file.write(piece)
    assert finished(file, tmp_path / "file") == b"".join(pieces)


@pytest.mark.parametrize("taken", [None, 0, 1, 5000])
def test_pieces_are_written_instead_of_the_buffer_that_stands_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int | None
) -> None:
    """`taken` bytes are all that the system takes at once, as when a disk is nearly full."""
    if taken is not None:
        write = os.write
        monkeypatch.setattr(os, "writev", lambda to, some: write(to, b"".join(some)[:taken]) if taken else 0)
    pieces = [bytes([number % 251]) * (number % 7) for number in range(PIECES_AT_ONCE + 100)]
    buffer = pa.py_buffer(bytes(sum(map(len, pieces))))
    file = ChecksummedFile(tmp_path / "file")
    file.write(b"before")
    file.instead_of(buffer.address, pieces)
    assert file.waits
    file.write(buffer)
    assert not file.waits
    file.write(b"after")
    assert finished(file, tmp_path / "file") == b"before" + b"".join(pieces) + b"after"


def test_an_abandoned_file_is_closed_without_a_last_write(tmp_path: Path) -> None:
    file = ChecksummedFile(tmp_path / "file")
    file.write(b"not written")
    file.abandon()
    assert file.closed
    assert (tmp_path / "file").read_bytes() == b""
