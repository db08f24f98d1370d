"""What lies in the cache folder is checked: who writes there runs no code, and gives no other samples."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from record_making import classified, write_records


class Evil:
    """Unpickled, it makes a folder."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("kind", ["pickle", "deep", "header", "empty", "numbers"])
def test_hostile_files_in_the_cache_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    cache, marker = tmp_path / "cache", tmp_path / "marker"
    monkeypatch.setenv("PENSTOCK_CACHE", str(cache))
    path = write_records(tmp_path / "a.tfrecord", [classified(number) for number in range(5)])
    before = [sample["label"] for sample in map(ps.TFRecords(path).__getitem__, range(5))]
    contents = {
        "pickle": pickle.dumps(Evil(marker)),
        "deep": b"[" * 200_000,
        "header": b"\x93NUMPY\x01\0\x10\0{'descr': ((((((",
        "empty": b"",
        "numbers": b"12345",
    }
    files = [file for file in cache.rglob("*") if file.is_file()]
    assert files
    for file in files:
        file.write_bytes(contents[kind])
    assert [sample["label"] for sample in map(ps.TFRecords(path).__getitem__, range(5))] == before
    assert not marker.exists()
