"""index.arrow: one fixed-width row per sample, in one record batch, so that opening it is a memory map.

It is derived from the shards alone, and could be made from them again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from penstock.errors import PackError
from penstock.packing.layout import INDEX_NAME, UNREADABLE_ARROW
from penstock.samples import Schema
from penstock.storage.mapped import mapped_buffer
from penstock.wording import counted

if TYPE_CHECKING:
    import pyarrow as pa

# group is a hash of the group's name: equal for equal names, without a table of names in memory.
DTYPES: dict[str, np.dtype[Any]] = {
    "shard": np.dtype(np.uint32),
    "row": np.dtype(np.uint32),
    "offset": np.dtype(np.uint64),
    "length": np.dtype(np.uint64),
    "position": np.dtype(np.uint16),
    "height": np.dtype(np.int32),
    "width": np.dtype(np.int32),
    "split": np.dtype(np.int16),
    "group": np.dtype(np.uint64),
    "label": np.dtype(np.int64),
    "checksum": np.dtype(np.uint64),
}
Columns = dict[str, NDArray[Any]]


def write_index(folder: Path, shard_files: Sequence[str], samples: int, schema: Schema, splits: Sequence[str]) -> None:
    """Make the index of finished shards. Its columns grow in files, not in memory."""
    import pyarrow as pa

    scratch = {name: folder / f"index.{name}.scratch" for name in DTYPES}
    columns = {name: _scratch_column(scratch[name], dtype, samples) for name, dtype in DTYPES.items()}
    position = 0
    for number, file in enumerate(shard_files):
        for part in shard_index(folder / file, number, schema, splits):
            length = len(part["shard"])
            for name, column in columns.items():
                column[position : position + length] = part[name]
            position += length
    arrays = [pa.array(column) for column in columns.values()]
    batch = pa.record_batch(arrays, names=list(columns))
    with pa.OSFile(str(folder / INDEX_NAME), "wb") as file_out, pa.ipc.new_file(file_out, batch.schema) as writer:
        writer.write_batch(batch)
    del columns, arrays, batch
    for path in scratch.values():
        path.unlink(missing_ok=True)


def _scratch_column(path: Path, dtype: np.dtype[Any], samples: int) -> NDArray[Any]:
    if samples == 0:
        return np.zeros(0, dtype)
    # Space is taken first: writing to a mapped page that the disk has no room for would end the process.
    with path.open("wb") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, samples * dtype.itemsize)
        else:
            file.write(bytes(samples * dtype.itemsize))
    return np.memmap(path, dtype, "r+", shape=(samples,))


def shard_index(path: Path, number: int, schema: Schema, splits: Sequence[str]) -> Iterator[Columns]:
    """The index rows of one shard, a record batch at a time."""
    import pyarrow as pa

    mapped = mapped_buffer(str(path), path.stat().st_size)
    reader = pa.ipc.open_file(mapped)
    row = 0
    leader = (0, 0, -1)
    for batch_number in range(reader.num_record_batches):
        batch = reader.get_batch(batch_number)
        columns, leader = _batch_index(batch, mapped.address, schema, splits, leader)
        columns["shard"] = np.full(len(batch), number, np.uint32)
        columns["row"] = np.arange(row, row + len(batch), dtype=np.uint32)
        row += len(batch)
        yield columns


def _batch_index(
    batch: pa.RecordBatch, start: int, schema: Schema, splits: Sequence[str], leader: tuple[int, int, int]
) -> tuple[Columns, tuple[int, int, int]]:
    offsets, lengths = _payload_places(batch, start, schema)
    columns: Columns = {
        "height": batch.column("height").to_numpy(),
        "width": batch.column("width").to_numpy(),
        "checksum": batch.column("checksum").to_numpy(),
        "split": np.array([splits.index(name) for name in batch.column("split").to_pylist()], np.int16),
        "group": np.array([group_bits(name) for name in batch.column("group").to_pylist()], np.uint64),
        "label": _labels(batch, schema),
    }
    columns["offset"], columns["length"], columns["position"], leader = _follow_leader(offsets, lengths, leader)
    return columns, leader


def group_bits(name: str) -> int:
    """The number that stands for a group in the index."""
    return xxhash.xxh3_64_intdigest(name.encode())


def _labels(batch: pa.RecordBatch, schema: Schema) -> NDArray[Any]:
    field = schema.label
    return np.full(len(batch), -1, np.int64) if field is None else batch.column(field.name).to_numpy()


def _payload_places(batch: pa.RecordBatch, start: int, schema: Schema) -> tuple[NDArray[Any], NDArray[Any]]:
    """Where in the file the payload of each row stands."""
    import pyarrow as pa

    if schema.image is None:
        return np.zeros(len(batch), np.uint64), np.zeros(len(batch), np.uint64)
    column = batch.column(schema.image.name)
    if pa.types.is_fixed_size_binary(column.type):
        width = column.type.byte_width
        first = column.buffers()[1].address - start
        return first + np.arange(len(batch), dtype=np.uint64) * width, np.full(len(batch), width, np.uint64)
    _, offset_buffer, data = column.buffers()
    inner = np.frombuffer(offset_buffer, np.int64, len(batch) + 1)
    first = 0 if data is None else data.address - start
    return (first + inner[:-1]).astype(np.uint64), np.diff(inner).astype(np.uint64)


def _follow_leader(
    offsets: NDArray[Any], lengths: NDArray[Any], leader: tuple[int, int, int]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], tuple[int, int, int]]:
    """Rows without bytes of their own are frames of the group of pictures in the last row that has some."""
    positions = np.zeros(len(offsets), np.uint16)
    if lengths.all() or not (lengths.any() or leader[1]):
        return offsets, lengths, positions, (0, 0, -1)
    offset, length, position = leader
    for row in range(len(offsets)):
        if lengths[row]:
            offset, length, position = int(offsets[row]), int(lengths[row]), 0
        else:
            position += 1
            offsets[row], lengths[row], positions[row] = offset, length, position
    return offsets, lengths, positions, (offset, length, position)


def open_index(folder: Path, samples: int) -> Columns:
    """The columns of an index as numpy views of the mapped file."""
    import pyarrow as pa

    path = folder / INDEX_NAME
    try:
        reader = pa.ipc.open_file(mapped_buffer(str(path), path.stat().st_size))
        batch = reader.get_batch(0)
        if len(batch) != samples:
            raise ValueError(f"it has {counted(len(batch), 'row')} and pack.json says {samples:,}")
        return {name: _index_column(batch, name, dtype) for name, dtype in DTYPES.items()}
    except UNREADABLE_ARROW as error:
        raise PackError(f"{path} cannot be read: {error}. Copy it again, or pack the data again.") from error


def _index_column(batch: pa.RecordBatch, name: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    import pyarrow as pa

    column = batch.column(name)
    if column.type != pa.from_numpy_dtype(dtype):
        raise ValueError(f"its column {name} is {column.type} and should be {dtype}")
    # Not to_numpy, which imports pandas on its way.
    return np.frombuffer(column.buffers()[1], dtype, len(batch))
