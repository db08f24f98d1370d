"""Rows of the index are looked at before they are used: nothing that points outside of its shard is followed.

A block of rows is looked at once, at its first use, so that opening a pack stays instant and an epoch pays nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import PackError
from penstock.packing.index import Columns
from penstock.packing.layout import INDEX_NAME
from penstock.packing.manifest import Manifest
from penstock.storage.writing.options import GOP_FRAMES

BLOCK_BITS = 12  # 4,096 rows: 50 µs at the first use of any of them

Misfit = tuple[int, str]


class RowChecks:
    """Which rows of an index fit their pack, block by block. Safe in threads: a block may be looked at twice."""

    def __init__(self, folder: Path, manifest: Manifest, columns: Columns) -> None:
        self._path, self._manifest, self._columns = folder / INDEX_NAME, manifest, columns
        self.known = bytearray(-(-manifest.samples >> BLOCK_BITS))  # a byte for each block, for the hot path
        self._is_done = False  # all blocks are known: an epoch asks several times for each range
        self._known = np.frombuffer(self.known, np.uint8)
        self._rows = np.array([shard.rows for shard in manifest.shards], np.uint64)
        self._bytes = np.array([shard.bytes for shard in manifest.shards], np.uint64)

    def check(self, indices: NDArray[np.int64]) -> None:
        """Raise PackError if one of these rows does not fit; their blocks are then known."""
        if self._is_done:
            return
        blocks = indices >> BLOCK_BITS
        if not self._known[blocks].all():
            for block in set(blocks[self._known[blocks] == 0].tolist()):
                self.check_block(block)

    def check_block(self, block: int) -> None:
        """The same for one block; a negative number counts from the end."""
        block %= len(self.known)
        first = block << BLOCK_BITS
        for row, what in self.misfits(first, min(first + (1 << BLOCK_BITS), self._manifest.samples)):
            raise self.error(row, what)
        self.known[block] = 1
        self._is_done = 0 not in self.known

    def check_column(self, name: str) -> None:
        """Raise PackError if a number of the column `split` or `label` names nothing."""
        for row, what in self._outside(name, self._columns[name], 0):
            raise self.error(row, what)

    def error(self, row: int, what: str) -> PackError:
        verify = f"Run `penstock verify {self._path.parent}`, and copy or pack it again."
        return PackError(f"{self._path} is damaged: sample {row} has {what}. {verify}")

    def misfits(self, start: int, stop: int) -> Iterator[Misfit]:
        """The rows of a stretch that do not fit, each with the first reason."""
        part = {name: column[start:stop] for name, column in self._columns.items()}
        fits, what = part["shard"] < len(self._rows), f"another shard than the {len(self._rows)} that there are"
        yield from _told(fits, start, what)
        shard = np.where(fits, part["shard"], 0)
        yield from _told(part["row"] < self._rows[shard], start, "a row that its shard does not have")
        size, length = self._bytes[shard], part["length"]
        inside = (length <= size) & (part["offset"] <= size - np.minimum(length, size))
        yield from _told(inside, start, "bytes outside of its shard")
        yield from _told((part["height"] >= 0) & (part["width"] >= 0), start, "a negative height or width")
        numbers = np.arange(start, stop, dtype=np.uint64)
        leads = (part["position"] <= np.minimum(part["row"], numbers)) & (part["position"] < GOP_FRAMES)
        yield from _told(leads, start, "a group of pictures that cannot be")
        for name in ("split", "label"):
            yield from self._outside(name, part[name], start)

    def _outside(self, name: str, values: NDArray[Any], start: int) -> Iterator[Misfit]:
        if name == "split":
            count, least = len(self._manifest.splits), 0
        else:
            count, least = max(len(self._manifest.schema.classes), 1), -1
        yield from _told((values >= least) & (values < count), start, f"a {name} that is none of the {count}")


def _told(fits: NDArray[np.bool_], start: int, what: str) -> Iterator[Misfit]:
    if not fits.all():
        yield from ((start + int(row), what) for row in np.flatnonzero(~fits))
