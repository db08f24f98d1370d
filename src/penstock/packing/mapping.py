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
from penstock.storage.mapped import Mapped, mapped_buffer
from penstock.wording import counted

if TYPE_CHECKING:
    import pyarrow as pa

Types = dict[str, Any]


class MappedShard:
    """A mapped shard file. Its descriptor is closed again at once: a pack may have thousands of shards."""

    def __init__(self, folder: Path, entry: ShardEntry, types: Types | None = None) -> None:
        """`types` are the Arrow types of its columns; without them, rows cannot be asked for."""
        self.path = folder / entry.file
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            raise PackError(f"{self.path} is missing. Run `penstock verify {folder}`.") from None
        if size != entry.bytes:
            raise PackError(
                f"{self.path} has {size:,} bytes and should have {entry.bytes:,}. Run `penstock verify {folder}`."
            )
        self._buffer = mapped_buffer(str(self.path), size)
        self.data = memoryview(self._buffer).cast("B")
        self.memory = Mapped(self._buffer.address, self._buffer.size)
        self._entry, self._types = entry, types or {}
        self._batches: list[dict[str, ColumnView]] | None = None
        self._starts = [0]  # of the record batches; a list, in which one row is found ten times as fast

    def batches(self) -> list[pa.RecordBatch]:
        """The record batches, as views of the mapped memory."""
        import pyarrow as pa

        try:
            reader = pa.ipc.open_file(self._buffer)
            batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
            for name, kind in self._types.items():
                if reader.schema.field(name).type != kind:
                    raise ValueError(f"its column {name} is {reader.schema.field(name).type} and should be {kind}")
            rows = sum(len(batch) for batch in batches)
            if rows != self._entry.rows:
                raise ValueError(f"it has {counted(rows, 'row')} and should have {self._entry.rows:,}")
            return batches
        except UNREADABLE_ARROW as error:
            raise self.damaged(error) from error

    def valid_batches(self, names: list[str] | None = None) -> list[pa.RecordBatch]:
        """The same, of these columns, after a look at every offset in them: pyarrow follows those as they are."""
        try:
            chosen = [batch.select(names) if names else batch for batch in self.batches()]
            for batch in chosen:
                batch.validate(full=True)
            return chosen
        except UNREADABLE_ARROW as error:
            raise self.damaged(error) from error

    def damaged(self, error: BaseException, row: int | None = None) -> PackError:
        """That this file cannot be as it was written."""
        where = self.path if row is None else f"{self.path} row {row}"
        return PackError(f"{where} is damaged: {error}. Run `penstock verify {self.path.parent}`.")

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
            try:
                self._batches = [batch_views(batch) for batch in batches]  # last: other threads look for it
            except UNREADABLE_ARROW as error:
                raise self.damaged(error) from error
        return self._batches

    def value(self, name: str, row: int) -> Any:
        views, inner = self.row(row)
        try:
            return views[name].value(inner)
        except UNREADABLE_ARROW as error:
            raise self.damaged(error, row) from error
