"""Rows → record batches → shard files. Where one ends follows from the rows alone."""

from __future__ import annotations

import mmap
from collections import deque
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from penstock.errors import PackError
from penstock.packing.checksummed import ChecksummedFile
from penstock.packing.columns import PiecesView, RowChecksums, batch_views
from penstock.packing.layout import BATCH_BYTES, BATCH_BYTES_LIMIT, shape_column
from penstock.samples import Field, Schema
from penstock.storage.plain_files import open_unbuffered
from penstock.storage.writing.preparing import Row

if TYPE_CHECKING:
    import pyarrow as pa

# Record batches that are being built while an earlier one is written.
BATCHES_AHEAD = 2

# Read, not mapped: mapped pages of a whole shard would count as memory of this process.
CHECKSUM_BLOCK_BYTES = 4 << 20


class ShardWriter:
    """One shard file being written. It collects the rows of one record batch; `pool` turns them into columns."""

    def __init__(self, path: Path, schema: Schema, arrow_schema: pa.Schema, pool: Executor) -> None:
        import pyarrow as pa

        self.path, self.schema, self.arrow_schema = path, schema, arrow_schema
        self.bytes = 0
        self.rows = 0
        self._pending: list[tuple[Row, str]] = []
        self._pending_bytes = 0
        self._pool = pool
        self._batches: deque[Future[Batch]] = deque()
        self.file = ChecksummedFile(path)
        self._writer = pa.ipc.new_file(pa.PythonFile(self.file, "w"), arrow_schema)

    def add(self, row: Row, split: str) -> None:
        size = row.bytes
        if self._pending and self._pending_bytes + size > BATCH_BYTES_LIMIT:
            self._flush()
        self._pending.append((row, split))
        self._pending_bytes += size
        self.bytes += size
        self.rows += 1
        if self._pending_bytes >= BATCH_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            self._batches.append(self._pool.submit(record_batch, self._pending, self.schema, self.arrow_schema))
            self._pending, self._pending_bytes = [], 0
        while len(self._batches) > BATCHES_AHEAD:
            self._batches.popleft().result().write(self._writer, self.file)

    def close(self) -> None:
        self._flush()
        while self._batches:
            self._batches.popleft().result().write(self._writer, self.file)
        self._writer.close()
        self.file.close()

    def abandon(self) -> None:
        """Close the file after a failure; what is in it will be written again."""
        for batch in self._batches:
            batch.cancel()
        self.file.abandon()


class Batch(NamedTuple):
    """The columns of a record batch, and the encoded images that a column of this name only stands for.

    Images are most of a pack: written one after another from where they are, they are never copied together.
    """

    columns: pa.RecordBatch
    images: dict[str, list[Any]]

    def write(self, writer: Any, file: ChecksummedFile) -> None:
        for name, payloads in self.images.items():
            buffer = self.columns.column(name).buffers()[2]
            if buffer.size:
                file.instead_of(buffer.address, payloads)
        writer.write_batch(self.columns)
        if file.waits:
            raise PackError("this version of pyarrow copies buffers before it writes them; install another.")


def record_batch(rows: list[tuple[Row, str]], schema: Schema, arrow_schema: pa.Schema) -> Batch:
    """The rows as Arrow columns, each with the checksum of all its others."""
    import pyarrow as pa

    images = _images(rows, schema, arrow_schema)
    columns = {**_sample_columns(rows), **{name: _stand_in(payloads) for name, payloads in images.items()}}
    for field in schema.fields:
        if field.name not in images:
            columns.update(_field_arrays(field, rows, schema, arrow_schema))
    unsigned = pa.record_batch([columns[name] for name in arrow_schema.names], schema=arrow_schema)
    views = {**batch_views(unsigned), **{name: PiecesView(payloads) for name, payloads in images.items()}}
    checksums = np.fromiter(map(RowChecksums(views), range(len(rows))), np.uint64, len(rows))
    columns["checksum"] = pa.array(checksums)
    return Batch(pa.record_batch([columns[name] for name in arrow_schema.names], schema=arrow_schema), images)


def _images(rows: list[tuple[Row, str]], schema: Schema, arrow_schema: pa.Schema) -> dict[str, list[Any]]:
    """The encoded images and masks of every row, by column; raw pixels are not among them."""
    import pyarrow as pa

    found: dict[str, list[Any]] = {}
    for field in schema.fields:
        if not pa.types.is_large_binary(arrow_schema.field(field.name).type):
            continue
        is_payload = field == schema.image
        found[field.name] = [row.payload if is_payload else row.values[field.name] for row, _ in rows]
    return found


def _sample_columns(rows: list[tuple[Row, str]]) -> dict[str, Any]:
    import pyarrow as pa

    text = pa.string()
    keys = [row.values.get("key", "") for row, _ in rows]
    return {
        "key": pa.array(keys, text),
        "group": pa.array([row.values.get("group", key) for (row, _), key in zip(rows, keys, strict=True)], text),
        "split": pa.array([split for _, split in rows], text),
        "origin": pa.array([row.values.get("origin", "") for row, _ in rows], text),
        "height": pa.array([row.height for row, _ in rows], pa.int32()),
        "width": pa.array([row.width for row, _ in rows], pa.int32()),
        "checksum": pa.array(np.zeros(len(rows), np.uint64)),
    }


def _field_arrays(field: Field, rows: list[tuple[Row, str]], schema: Schema, arrow_schema: pa.Schema) -> dict[str, Any]:
    import pyarrow as pa

    kind = arrow_schema.field(field.name).type
    if field == schema.image:
        return {field.name: _raw_pixels([row.payload for row, _ in rows], kind)}
    values = [row.values[field.name] for row, _ in rows]
    if field.kind == "text":
        return {field.name: pa.array(values, pa.string())}
    if field.kind in ("class", "number"):
        return {field.name: _numbers(np.asarray(values), kind)}
    if field.kind == "boxes":
        return {field.name: _lists(values, kind)}
    if pa.types.is_fixed_size_list(kind):
        flat = _numbers(np.concatenate([array.ravel() for array in values]), kind.value_type)
        return {field.name: pa.FixedSizeListArray.from_arrays(flat, type=kind)}
    columns = {field.name: _lists([array.ravel() for array in values], kind)}
    if shape_column(field) in arrow_schema.names:
        shapes = np.array([array.shape for array in values], np.int64)
        shape_type = arrow_schema.field(shape_column(field)).type
        columns[shape_column(field)] = pa.FixedSizeListArray.from_arrays(pa.array(shapes.ravel()), type=shape_type)
    return columns


def _numbers(values: NDArray[Any], kind: Any) -> Any:
    import pyarrow as pa

    return pa.array(values.astype(kind.to_pandas_dtype(), copy=False), kind)


def _raw_pixels(payloads: list[Any], kind: Any) -> Any:
    import pyarrow as pa

    return pa.FixedSizeBinaryArray.from_buffers(kind, len(payloads), [None, pa.py_buffer(b"".join(payloads))])


def _stand_in(payloads: list[Any]) -> Any:
    """An array of the right lengths over memory that is reserved and never touched."""
    import pyarrow as pa

    offsets = np.zeros(len(payloads) + 1, np.int64)
    np.cumsum([len(payload) for payload in payloads], out=offsets[1:])
    reserved = mmap.mmap(-1, int(offsets[-1])) if offsets[-1] else b""
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(reserved)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(payloads), buffers)


def _lists(arrays: list[NDArray[Any]], kind: Any) -> Any:
    """One list per row, of numbers or of vectors with a fixed length."""
    import pyarrow as pa

    large = pa.types.is_large_list(kind)
    offsets = np.zeros(len(arrays) + 1, np.int64 if large else np.int32)
    np.cumsum([len(array) for array in arrays], out=offsets[1:])
    together = np.concatenate(arrays)
    if pa.types.is_fixed_size_list(kind.value_type):
        inner = _numbers(together.ravel(), kind.value_type.value_type)
        values = pa.FixedSizeListArray.from_arrays(inner, type=kind.value_type)
    else:
        values = _numbers(together, kind.value_type)
    maker = pa.LargeListArray if large else pa.ListArray
    return maker.from_arrays(pa.array(offsets), values, type=kind)


def file_checksum(path: Path) -> str:
    """The checksum of a whole file, as the manifest holds it."""
    digest = xxhash.xxh3_64()
    block = memoryview(bytearray(CHECKSUM_BLOCK_BYTES))
    with open_unbuffered(path) as file:
        while count := file.readinto(block):
            digest.update(block[:count])
    return digest.hexdigest()
