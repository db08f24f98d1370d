"""One MDS shard: mapped (or decompressed), and where in it each value lies.

┌ samples: uint32 ┬ offsets: uint32 × (samples + 1) ┬ settings as JSON ┬ samples …
a sample:  sizes of the columns without a fixed one: uint32 each ┬ the values one after another
"""

from __future__ import annotations

import bz2
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from penstock.errors import DataError, Problem
from penstock.formats.columns.mapped_files import mapped_bytes
from penstock.storage.free_memory import check_unpacked
from penstock.wording import counted

_CODECS = {"zstd": "zstd", "gz": "gzip", "br": "brotli", "snappy": "snappy"}
_HASHES = {"xxh32": xxhash.xxh32, "xxh64": xxhash.xxh64, "xxh128": xxhash.xxh128}
_HASHES |= {"xxh3_64": xxhash.xxh3_64, "xxh3_128": xxhash.xxh3_128}


@dataclass(frozen=True)
class StoredFile:
    """A file as index.json describes it."""

    path: Path
    size: int
    hashes: dict[str, str]


@dataclass(frozen=True)
class ShardEntry:
    """A shard as index.json describes it."""

    samples: int
    names: tuple[str, ...]
    encodings: tuple[str, ...]
    sizes: tuple[int | None, ...]
    raw: StoredFile
    packed: StoredFile | None
    compression: str

    @property
    def file(self) -> Path:
        """The file that is there: the plain one if both are."""
        return self.packed.path if self.packed is not None and not self.raw.path.is_file() else self.raw.path


class Shard:
    """The bytes of a shard, and for each column where the value of each row begins and ends."""

    def __init__(self, entry: ShardEntry, verify: bool) -> None:
        self.entry = entry
        self.data = _content(entry, verify)
        self.starts, self.ends = _places(entry, self.data)
        # memoryviews give plain ints, in half the time of numpy scalars
        self._begin, self._end = [row.data for row in self.starts], [row.data for row in self.ends]

    def value(self, column: int, row: int) -> memoryview:
        return self.data[self._begin[column][row] : self._end[column][row]]

    def numbers(self, column: int, dtype: str) -> NDArray[Any]:
        """A column of one fixed size, all rows at once."""
        width = self.entry.sizes[column] or 0
        places = self.starts[column][:, None] + np.arange(width)
        flat = np.frombuffer(self.data, np.uint8)[places]
        numbers: NDArray[Any] = flat.view(np.dtype(dtype).newbyteorder("<"))
        return numbers


def _content(entry: ShardEntry, verify: bool) -> memoryview:
    file = entry.raw if entry.file == entry.raw.path else entry.packed
    assert file is not None
    data = mapped_bytes(file.path, file.size)
    if verify:
        wrong = wrong_hash(file, data)
        if wrong:
            raise DataError([Problem(str(file.path), None, wrong, "It is damaged; copy it again")])
    return data if file is entry.raw else _unpacked(entry, file.path, data)


def wrong_hash(file: StoredFile, data: memoryview) -> str:
    """Which of its hashes does not match; empty when all that are known do."""
    for name, expected in file.hashes.items():
        if name in _HASHES:
            found = _HASHES[name](data).hexdigest()
        elif name in hashlib.algorithms_available and not name.startswith("shake"):
            found = hashlib.new(name, data, usedforsecurity=False).hexdigest()
        else:
            continue
        if found != expected:
            return f"its {name} is {found}, and index.json says {expected}"
    return ""


def _unpacked(entry: ShardEntry, path: Path, data: memoryview) -> memoryview:
    import pyarrow as pa

    kind = entry.compression.partition(":")[0]
    try:
        check_unpacked(entry.raw.size, len(data))
        if kind == "bz2":
            found = memoryview(bz2.BZ2Decompressor().decompress(data, entry.raw.size + 1))
        elif kind in _CODECS:
            found = memoryview(pa.decompress(pa.py_buffer(data), entry.raw.size, codec=_CODECS[kind])).cast("B")
        else:
            what, remedy = f"its compression {kind!r} is not read", "Decompress the shards"
            raise DataError([Problem(str(path), None, what, remedy)])
    except (pa.ArrowException, OSError, ValueError) as error:
        what = f"it cannot be decompressed ({error})"
        raise DataError([Problem(str(path), None, what, "It is damaged; copy it again")]) from error
    if len(found) != entry.raw.size:
        what = f"decompressed it has {len(found):,} bytes and should have {entry.raw.size:,}"
        raise DataError([Problem(str(path), None, what, "It is damaged; copy it again")])
    return found


def _places(entry: ShardEntry, data: memoryview) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Begin and end of every value, columns × rows; what reaches outside of the shard is damage."""
    offsets = _offsets(entry, data)
    begins, ends = offsets[:-1], offsets[1:]
    free = [size is None for size in entry.sizes]
    head = 4 * sum(free)
    if len(begins) and int((ends - begins).min()) < head:
        raise _damaged(entry, "a sample is shorter than its sizes")
    lengths = np.zeros((len(entry.sizes), len(begins)), np.int64)
    sizes = np.frombuffer(data, np.uint8)[begins[:, None] + np.arange(head)].view("<u4").reshape(len(begins), -1)
    lengths[free] = sizes.T
    lengths[[not one for one in free]] = np.array([size for size in entry.sizes if size is not None])[:, None]
    stops = begins + head + np.cumsum(lengths, axis=0)
    if len(begins) and (stops[-1] != ends).any():
        row = int(np.flatnonzero(stops[-1] != ends)[0])
        raise _damaged(entry, f"the columns of sample {row} do not fill its bytes")
    return stops - lengths, stops


def _offsets(entry: ShardEntry, data: memoryview) -> NDArray[np.int64]:
    count = int.from_bytes(data[:4], "little")
    if count != entry.samples or len(data) < 4 * (count + 2):
        raise _damaged(entry, f"it says {counted(count, 'sample')}, and index.json {entry.samples:,}")
    offsets = np.frombuffer(data, "<u4", count + 1, 4).astype(np.int64)
    if (np.diff(offsets) < 0).any() or int(offsets[-1]) > len(data):
        raise _damaged(entry, "its offsets lead outside")
    return offsets


def _damaged(entry: ShardEntry, what: str) -> DataError:
    return DataError([Problem(str(entry.file), None, f"it is damaged: {what}", "Copy or write it again")])


def missing_files(entries: Sequence[ShardEntry]) -> list[Problem]:
    """Shards that index.json names and that are not there."""
    remedy = "Download every shard, or write the dataset again"
    return [
        Problem(str(entry.raw.path), None, "index.json names this shard, and it is not there", remedy)
        for entry in entries
        if not entry.file.is_file()
    ]
