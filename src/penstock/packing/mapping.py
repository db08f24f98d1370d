"""One shard as mapped memory: bytes by offset for the hot path, rows by number for labels."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import PackError
from penstock.packing.columns import ColumnView, batch_views
from penstock.packing.layout import UNREADABLE_ARROW
from penstock.packing.manifest import ShardEntry

if TYPE_CHECKING:
    import pyarrow as pa


class MappedShard:
    """A mapped shard file. Its descriptor is closed again at once: a pack may have thousands of shards."""

    def __init__(self, folder: Path, entry: ShardEntry) -> None:
        import pyarrow as pa

        self.path = folder / entry.file
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            raise PackError(f"{self.path} is missing. Run `penstock verify {folder}`.") from None
        # A page beyond the end of a mapped file ends the process with SIGBUS, so sizes are compared first.
        if size != entry.bytes:
            raise PackError(
                f"{self.path} has {size:,} bytes and should have {entry.bytes:,}. Run `penstock verify {folder}`."
            )
        with pa.memory_map(str(self.path)) as mapped:
            self._buffer = mapped.read_buffer()
        self.data = memoryview(self._buffer).cast("B")
        self.address: int = self._buffer.address
        self._batches: list[dict[str, ColumnView]] | None = None
        self._starts = [0]  # of the record batches; a list, in which one row is found ten times as fast

    def batches(self) -> list[pa.RecordBatch]:
        """The record batches, as views of the mapped memory."""
        import pyarrow as pa

        try:
            reader = pa.ipc.open_file(self._buffer)
            return [reader.get_batch(number) for number in range(reader.num_record_batches)]
        except UNREADABLE_ARROW as error:
            raise PackError(f"{self.path} is damaged: {error}. Run `penstock verify {self.path.parent}`.") from error

    def row(self, row: int) -> tuple[dict[str, ColumnView], int]:
        """The column views that hold a row of this shard, and its number in them."""
        views = self._views()
        number = bisect_right(self._starts, row) - 1
        return views[number], row - self._starts[number]

    def rows(self, rows: NDArray[Any]) -> Iterator[tuple[NDArray[Any], dict[str, ColumnView], NDArray[Any]]]:
        """For each record batch that holds some of these rows: which of them, its views, their numbers in it."""
        views = self._views()
        batches = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.flatnonzero(np.bincount(batches)):
            places = np.flatnonzero(batches == number)
            yield places, views[number], rows[places] - self._starts[number]

    def _views(self) -> list[dict[str, ColumnView]]:
        if self._batches is None:
            batches = self.batches()
            self._starts = [0, *itertools.accumulate(len(batch) for batch in batches)]
            self._batches = [batch_views(batch) for batch in batches]  # last: other threads look for it
        return self._batches

    def value(self, name: str, row: int) -> Any:
        views, inner = self.row(row)
        return views[name].value(inner)
