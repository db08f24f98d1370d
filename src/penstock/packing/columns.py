"""Arrow columns as rows: numpy views onto the buffers of one record batch, made once, nothing copied.

Each view gives the value of a row, and the bytes of a row as its checksum sees them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import xxhash
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


NARROW_BYTES = 1024


class ColumnView(Protocol):
    def value(self, row: int) -> Any: ...
    def take(self, rows: Sequence[int]) -> list[Any]:
        """`value` of these rows."""
        ...

    def content(self, row: int) -> bytes | memoryview: ...
    def lengths(self) -> NDArray[np.int64]:
        """The number of bytes of every row, as its checksum sees them."""
        ...


class FixedView:
    """Numbers, vectors of a fixed length, raw pixels: every row has the same number of bytes."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values

    def value(self, row: int) -> Any:
        return self.values[row]

    def take(self, rows: Sequence[int]) -> list[Any]:
        return list(self.values[rows])

    def content(self, row: int) -> bytes:
        content: bytes = self.values[row].tobytes()
        return content

    def lengths(self) -> NDArray[np.int64]:
        return np.full(len(self.values), self.values[:1].nbytes, np.int64)


class BytesView:
    """Strings and encoded images: offsets into one stretch of bytes."""

    def __init__(self, offsets: NDArray[Any], data: memoryview, text: bool) -> None:
        # a memoryview gives plain ints, in half the time of numpy scalars
        self.offsets, self.data, self.text = offsets.data, data, text

    def content(self, row: int) -> memoryview:
        return self.data[self.offsets[row] : self.offsets[row + 1]]

    def lengths(self) -> NDArray[np.int64]:
        return np.diff(np.asarray(self.offsets)).astype(np.int64)

    def value(self, row: int) -> str | memoryview:
        return str(self.content(row), "utf-8") if self.text else self.content(row)

    def take(self, rows: Sequence[int]) -> list[Any]:
        offsets, data = self.offsets, self.data
        contents = [data[offsets[row] : offsets[row + 1]] for row in rows]
        return [str(content, "utf-8") for content in contents] if self.text else contents


class PiecesView:
    """Encoded images that are not yet in one stretch."""

    def __init__(self, pieces: Sequence[Any]) -> None:
        self.pieces = pieces

    def value(self, row: int) -> Any:
        return self.pieces[row]

    def take(self, rows: Sequence[int]) -> list[Any]:
        return [self.pieces[row] for row in rows]

    def content(self, row: int) -> Any:
        return self.pieces[row]

    def lengths(self) -> NDArray[np.int64]:
        return np.fromiter(map(len, self.pieces), np.int64, len(self.pieces))


class ListView:
    """Lists of numbers, or of vectors of a fixed length (boxes)."""

    def __init__(self, offsets: NDArray[Any], values: NDArray[Any]) -> None:
        self.offsets, self.values = offsets, values

    def value(self, row: int) -> NDArray[Any]:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def take(self, rows: Sequence[int]) -> list[Any]:
        return [self.values[self.offsets[row] : self.offsets[row + 1]] for row in rows]

    def content(self, row: int) -> bytes:
        return self.value(row).tobytes()

    def lengths(self) -> NDArray[np.int64]:
        return (
            np.diff(self.offsets).astype(np.int64) * self.values[:1].nbytes
            if len(self.values)
            else (np.zeros(len(self.offsets) - 1, np.int64))
        )


def view(column: pa.Array) -> ColumnView:
    """The view that fits an Arrow array without nulls and without an offset of its own."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_binary(kind):
        _, offsets, data = column.buffers()
        width = np.int32 if pa.types.is_string(kind) else np.int64
        return BytesView(_numbers(offsets, width, len(column) + 1), _memory(data), pa.types.is_string(kind))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        offsets = column.buffers()[1]
        width = np.int32 if pa.types.is_list(kind) else np.int64
        return ListView(_numbers(offsets, width, len(column) + 1), _fixed(column.values))
    return FixedView(_fixed(column))


def _fixed(column: pa.Array) -> NDArray[Any]:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_fixed_size_list(kind):
        return _fixed(column.values).reshape(len(column), kind.list_size)
    if pa.types.is_fixed_size_binary(kind):
        return _numbers(column.buffers()[1], np.uint8, len(column) * kind.byte_width).reshape(len(column), -1)
    return _numbers(column.buffers()[1], kind.to_pandas_dtype(), len(column))


def _numbers(buffer: pa.Buffer | None, dtype: Any, count: int) -> NDArray[Any]:
    if buffer is None or count == 0:
        return np.zeros(count, dtype)
    return np.frombuffer(buffer, dtype, count)


def _memory(buffer: pa.Buffer | None) -> memoryview:
    return memoryview(b"") if buffer is None else memoryview(buffer).cast("B")


def batch_views(batch: pa.RecordBatch) -> dict[str, ColumnView]:
    """The views of every column of a record batch, by name."""
    return {name: view(batch.column(number)) for number, name in enumerate(batch.schema.names)}


def row_checksum(views: dict[str, ColumnView], row: int) -> int:
    """The checksum of one row: everything in it but the checksum itself."""
    return RowChecksums(views)(row)


class RowChecksums:
    """Checksums of the rows of one record batch.

    Columns of a fixed width, and the lengths of the others, are laid side by side once, so that a row costs one
    slice for all of them. Long contents enter as their own checksum, which keeps the pieces small enough to join.
    """

    def __init__(self, views: dict[str, ColumnView]) -> None:
        others = [column for name, column in views.items() if name != "checksum"]
        self._variable = [column for column in others if not _is_narrow(column)]
        fixed = [column.values for column in others if isinstance(column, FixedView) and _is_narrow(column)]
        lengths = [column.lengths() for column in self._variable]
        matrices = [np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1) for values in fixed + lengths]
        fixed_bytes = np.hstack(matrices)
        self._fixed, self._width = fixed_bytes.tobytes(), fixed_bytes.shape[1]

    def __call__(self, row: int) -> int:
        pieces: list[bytes | memoryview] = [self._fixed[row * self._width : (row + 1) * self._width]]
        for column in self._variable:
            content = column.content(row)
            pieces.append(content if len(content) <= NARROW_BYTES else xxhash.xxh3_64_digest(content))
        return xxhash.xxh3_64_intdigest(b"".join(pieces))


def _is_narrow(column: ColumnView) -> bool:
    return isinstance(column, FixedView) and column.values.nbytes <= NARROW_BYTES * max(len(column.values), 1)
