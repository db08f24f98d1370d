"""Datasets whose rows lie in the file as they are: mapped, and read without h5py and its lock.

contiguous              row r at offset + r × bytes of a row
chunks of whole rows    row r in chunk r // rows of a chunk, at the byte where that chunk lies
Compressed, external, virtual and partly written datasets are left to h5py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.formats.columns.mapped_files import mapped_bytes
from penstock.formats.columns.tables import ArrayColumn, Column, Holds, Numbers, Places

# Smaller rows cost more to look up one by one than to read at once.
LEAST_ROW_BYTES = 1024


def mapped_column(path: Path, dataset: Any) -> Column | None:
    """The dataset as mapped rows, or None where they do not lie as they are."""
    if _is_special(dataset) or not dataset.size:
        return None
    column = _contiguous(path, dataset) if dataset.chunks is None else _in_chunks(path, dataset)
    # What h5py gives decides; a file laid out in a way that is not known here is read through it.
    return (
        column if column is not None and all(_agrees(column, dataset, row) for row in (0, len(dataset) - 1)) else None
    )


def _agrees(column: Column, dataset: Any, row: int) -> bool:
    return np.array_equal(column.value(row), dataset[row], equal_nan=dataset.dtype.kind == "f")


def _contiguous(path: Path, dataset: Any) -> Column | None:
    offset, size = dataset.id.get_offset(), path.stat().st_size
    if offset is None or offset + dataset.nbytes > size:
        return None
    values = np.frombuffer(mapped_bytes(path, size), dataset.dtype, dataset.size, offset)
    return ArrayColumn(values.reshape(dataset.shape))


def _in_chunks(path: Path, dataset: Any) -> Column | None:
    row_bytes, size = dataset.nbytes // len(dataset), path.stat().st_size
    if row_bytes < LEAST_ROW_BYTES or dataset.chunks[1:] != dataset.shape[1:]:
        return None
    starts = _starts(dataset, row_bytes)
    if starts is None or int(starts.max()) + row_bytes > size:
        return None
    return MappedRows(path, size, dataset.dtype, dataset.shape[1:], starts)


def _is_special(dataset: Any) -> bool:
    plist = dataset.id.get_create_plist()
    return bool(plist.get_nfilters() or dataset.is_virtual or dataset.external) or dataset.dtype.kind not in "iuf"


def _starts(dataset: Any, row_bytes: int) -> NDArray[np.int64] | None:
    """The byte at which each row begins; None where some were never written."""
    rows, count = dataset.chunks[0], -(-len(dataset) // dataset.chunks[0])
    if dataset.id.get_num_chunks() != count:
        return None
    chunks = np.zeros(count, np.int64)
    for first, offset in _chunk_places(dataset):
        chunks[first // rows] = offset
    numbers = np.arange(len(dataset), dtype=np.int64)
    starts: NDArray[np.int64] = chunks[numbers // rows] + numbers % rows * row_bytes
    return starts


def _chunk_places(dataset: Any) -> list[tuple[int, int]]:
    """First row and byte of each chunk."""
    found: list[tuple[int, int]] = []
    if hasattr(dataset.id, "chunk_iter"):
        dataset.id.chunk_iter(lambda info: found.append((info.chunk_offset[0], info.byte_offset)))
        return found
    infos = (dataset.id.get_chunk_info(number) for number in range(dataset.id.get_num_chunks()))
    return [(info.chunk_offset[0], info.byte_offset) for info in infos]


class MappedRows:
    """Rows of one fixed size at known bytes of a mapped file."""

    def __init__(
        self, path: Path, size: int, dtype: np.dtype[Any], shape: tuple[int, ...], starts: NDArray[np.int64]
    ) -> None:
        self.holds = Holds("array", dtype.name, tuple(shape))
        self._data = mapped_bytes(path, size)
        self._dtype, self._shape, self._starts = dtype, shape, starts
        self._count = int(np.prod(shape, dtype=np.int64))

    def value(self, row: int) -> Any:
        return np.frombuffer(self._data, self._dtype, self._count, int(self._starts[row])).reshape(self._shape)[()]

    def values(self, rows: Numbers) -> NDArray[Any] | None:
        return np.stack([self.value(row) for row in rows.tolist()])

    def whole(self) -> NDArray[Any]:
        return np.stack([self.value(row) for row in range(len(self._starts))])

    def flat(self) -> NDArray[Any]:
        return self.whole().reshape(-1)

    def places(self, rows: Numbers) -> Places | None:
        return Places(self._data, self._starts[rows])
