"""Arrow arrays as a column: bytes are slices of the memory they lie in."""

from __future__ import annotations

import bisect
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, Problem
from penstock.formats.columns.tables import Holds, Numbers, Places
from penstock.samples.store import objects
from penstock.storage.free_memory import SMALL_BYTES, check_unpacked

if TYPE_CHECKING:
    import pyarrow as pa


class _Bytes(NamedTuple):
    """One chunk of bytes: where each row begins, the memory, and which rows have a value (None: all)."""

    offsets: Any
    data: memoryview
    valid: NDArray[np.bool_] | None


class ArrowColumn:
    """The chunks of one column, one after another."""

    def __init__(self, chunks: Sequence[pa.Array], holds: Holds, where: str) -> None:
        self.holds, self._where = holds, where
        self._chunks = [plain(chunk, where) for chunk in chunks]
        self._starts = [0, *np.cumsum([len(chunk) for chunk in chunks]).tolist()]
        self._bytes: list[_Bytes | None] = [None] * len(self._chunks)
        self._is_checked = [False] * len(self._chunks)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def value(self, row: int) -> Any:
        number = bisect.bisect_right(self._starts, row) - 1
        inner = row - self._starts[number]
        if self.holds.what == "bytes":
            return self._content(number, inner)
        if self.holds.shape == () or self.holds.what != "array":
            return self._chunk(number)[inner].as_py()
        return self._array(self._chunk(number)[inner])

    def _chunk(self, number: int) -> pa.Array:
        """A chunk whose offsets were checked: pyarrow follows them wherever they lead, also out of the file."""
        chunk = self._chunks[number]
        if not self._is_checked[number]:
            check_offsets(chunk, self._where)
            self._is_checked[number] = True
        return chunk

    @property
    def _all_chunks(self) -> list[pa.Array]:
        return [self._chunk(number) for number in range(len(self._chunks))]

    def _content(self, number: int, row: int) -> memoryview:
        chunk = self._bytes[number]
        if chunk is None:
            chunk = self._bytes[number] = _as_bytes(self._chunk(number))
        if chunk.valid is not None and not chunk.valid[row]:
            raise ValueError("it has no bytes here; the dataset may only name files that are elsewhere")
        return chunk.data[chunk.offsets[row] : chunk.offsets[row + 1]]

    def _array(self, scalar: Any) -> Any:
        values = scalar.as_py()
        if values is None:
            return None
        shape = self.holds.shape
        try:
            array = np.array(values, self.holds.dtype)  # lists of different lengths raise
        except TypeError:
            raise ValueError("a number is missing (null) within a list") from None
        return array.reshape(0, *(side or 0 for side in shape[1:])) if not array.size and len(shape) > 1 else array

    def values(self, rows: Numbers) -> NDArray[Any] | None:
        numbers = self._numbers
        return None if numbers is None else numbers[rows]

    @functools.cached_property
    def _numbers(self) -> NDArray[Any] | None:
        """All rows at once, where each has one number, or as many as every other one, and none is missing."""
        is_fixed = self.holds.what == "array" and None not in self.holds.shape
        if not is_fixed or any(chunk.null_count for chunk in self._chunks):
            return None
        flat = self.flat().astype(self.holds.dtype, copy=False)
        wanted = (len(self), *(side or 0 for side in self.holds.shape))
        return flat.reshape(wanted) if flat.size == np.prod(wanted) else None

    def whole(self) -> NDArray[Any]:
        if self.holds.what != "array":
            return objects([value for chunk in self._all_chunks for value in chunk.to_pylist()])
        if self.holds.shape == ():
            return np.concatenate([_numbers_of(chunk) for chunk in self._all_chunks])
        return objects([self.value(row) for row in range(len(self))])

    def flat(self) -> NDArray[Any]:
        return np.concatenate([_numbers_of(bottom(chunk, self._where)) for chunk in self._all_chunks])

    def gaps(self) -> int:
        """How many rows have no value."""
        return sum(chunk.null_count for chunk in self._chunks)

    def places(self, rows: Numbers) -> Places | None:
        return None


def check_offsets(chunk: pa.Array, where: str) -> None:
    """Refuse offsets and numbers of dictionaries that lead out of a column."""
    import pyarrow as pa

    try:
        chunk.validate(full=True)
    except pa.ArrowException as error:
        problem = Problem(where, None, f"a column is damaged ({error})", "Copy or write it again")
        raise DataError([problem]) from error


def plain(chunk: pa.Array, where: str) -> pa.Array:
    """Without dictionaries and views, whose values lie elsewhere."""
    import pyarrow as pa

    if isinstance(chunk, pa.ExtensionArray):
        chunk = chunk.storage
    if pa.types.is_dictionary(chunk.type):
        check_offsets(chunk, where)
        _check_repeats(chunk, where)
        chunk = chunk.dictionary_decode()
    if pa.types.is_binary_view(chunk.type):
        check_offsets(chunk, where)
        chunk = chunk.cast(pa.large_binary())
    return chunk


def _check_repeats(chunk: pa.DictionaryArray, where: str) -> None:
    """Refuse a dictionary whose values, one for each row, would fill the memory."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = chunk.dictionary.type
    if not (pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind)):
        return
    lengths = pc.binary_length(chunk.dictionary)
    if len(chunk) * (pc.max(lengths).as_py() or 0) > SMALL_BYTES:
        total = pc.sum(pc.take(lengths, chunk.indices)).as_py() or 0
        try:
            check_unpacked(total, chunk.nbytes)
        except ValueError as error:
            problem = Problem(where, None, f"it is refused: {error}", "Write it again without a dictionary")
            raise DataError([problem]) from error


def bottom(chunk: pa.Array, where: str) -> pa.Array:
    """The numbers below lists of lists."""
    import pyarrow as pa

    types = pa.types
    chunk = plain(chunk, where)
    while types.is_list(chunk.type) or types.is_large_list(chunk.type) or types.is_fixed_size_list(chunk.type):
        chunk = plain(chunk.flatten(), where)
    return chunk


def _numbers_of(chunk: pa.Array) -> NDArray[Any]:
    """Numbers; −1 for a whole number that is missing, not a number for the others."""
    import pyarrow as pa

    if chunk.null_count and not pa.types.is_floating(chunk.type):
        chunk = chunk.cast(pa.int64()).fill_null(-1)
    found: NDArray[Any] = chunk.to_numpy(zero_copy_only=False)
    return found


def _as_bytes(chunk: pa.Array) -> _Bytes:
    import pyarrow as pa

    width = np.int64 if pa.types.is_large_binary(chunk.type) else np.int32
    _, offsets, data = chunk.buffers()
    places = np.frombuffer(offsets, width)[chunk.offset : chunk.offset + len(chunk) + 1]
    content = memoryview(b"") if data is None else memoryview(data).cast("B")
    valid = chunk.is_valid().to_numpy(zero_copy_only=False) if chunk.null_count else None
    return _Bytes(places.data, content, valid)


def below(chunk: pa.Array, path: tuple[str, ...], holds: Holds) -> pa.Array:
    """The part of a struct that a path leads to; of an encoded image its bytes."""
    import pyarrow as pa

    for name in path:
        chunk = chunk.field(name)
    if holds.what == "bytes" and pa.types.is_struct(chunk.type):
        return chunk.field("bytes")
    return chunk
