"""What a batch looks like: fields of fixed size in a slot, loose ones in lists, and how rows become a batch."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.flow.steps import Batch
from penstock.samples import Field, Sample, Schema

ALIGNMENT = 64  # a cache line, and what vector instructions like


class Place(NamedTuple):
    """The values of one field of one sample, as they stand in a slot."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Layout:
    """Fixed fields with their places; the other fields come as lists of values, one for each sample."""

    fixed: dict[str, Place]
    loose: tuple[str, ...] = ()

    def slot_bytes(self, rows: int) -> int:
        """The size of a slot for so many samples."""
        return sum(_aligned(place.bytes * rows) for place in self.fixed.values())

    def rows_of(self, size: int, most: int) -> int:
        """The rows, up to `most`, of a slot of this size; those that alignment has room for change no place in it."""
        return bisect_right(range(1, most + 1), size, key=self.slot_bytes)

    def arrays(self, memory: NDArray[np.uint8], rows: int) -> dict[str, NDArray[Any]]:
        """The fields of a slot as arrays over its memory."""
        found, start = {}, 0
        for name, place in self.fixed.items():
            found[name] = np.ndarray((rows, *place.shape), place.dtype, memory, start)
            start += _aligned(place.bytes * rows)
        return found


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def place_of_field(field: Field) -> Place | None:
    """The place of a field whose size the schema knows; None where samples differ."""
    if field.kind == "class":
        return Place((), np.dtype(np.int64))
    if field.kind == "number":
        return Place((), np.dtype(field.dtype or "float64"))
    if field.kind in ("array", "labels") and field.shape is not None and None not in field.shape:
        shape = tuple(size for size in field.shape if size is not None)
        return Place(shape, np.dtype(field.dtype or "int64"))
    return None


def layout_of_schema(schema: Schema, image: Place | None) -> Layout:
    """The layout of samples that only change in their images."""
    fixed: dict[str, Place] = {}
    loose = []
    for field in schema.fields:
        place = image if field == schema.image else place_of_field(field)
        if place is None:
            loose.append(field.name)
        else:
            fixed[field.name] = place
    return Layout(fixed, tuple(loose))


def layout_of_sample(sample: Sample) -> Layout:
    """The layout of samples that are all like this one."""
    fixed = {}
    loose = []
    for name, value in sample.items():
        if isinstance(value, (str, bytes)) or value is None:
            loose.append(name)
            continue
        array = np.asarray(value)
        if array.dtype.kind in "biufc":
            fixed[name] = Place(array.shape, array.dtype)
        else:
            loose.append(name)
    return Layout(fixed, tuple(loose))


# Where a worker writes: some rows of a batch, fixed fields into arrays, loose ones into lists.


NUMBERS = ("index", "draw", "member", "epoch")  # which sample it is; written for all rows at once


class Rows:
    """Rows of a batch. `arrays` are slices of the slot; `loose` has one list for each field without a fixed size."""

    def __init__(self, layout: Layout, arrays: dict[str, NDArray[Any]], count: int) -> None:
        self.layout, self.arrays, self.count = layout, arrays, count
        self.loose: dict[str, list[Any]] = {name: [None] * count for name in layout.loose}

    @classmethod
    def fresh(cls, layout: Layout, count: int) -> Rows:
        """Rows with memory of their own."""
        arrays = {name: np.empty((count, *place.shape), place.dtype) for name, place in layout.fixed.items()}
        return cls(layout, arrays, count)

    def part(self, start: int, stop: int) -> Rows:
        """Some of these rows; what is put there is put here."""
        part = Rows.__new__(Rows)
        part.layout, part.count = self.layout, stop - start
        part.arrays = {name: array[start:stop] for name, array in self.arrays.items()}
        part.loose = {name: _ListPart(values, start) for name, values in self.loose.items()}  # type: ignore[misc]
        return part

    def put(self, row: int, sample: Sample) -> None:
        """Write one sample; every field must be there and be like those of the other samples."""
        for name, place in self.layout.fixed.items():
            if name in NUMBERS:
                continue
            if name not in sample:
                raise OptionError(f"a sample without {name!r}: it has {', '.join(sample)}; other samples have it")
            value = _array(name, sample[name])
            if value.shape != place.shape or not (value.dtype == place.dtype or _fits(value, place.dtype)):
                raise OptionError(_unlike(name, value, place.shape, place.dtype))
            self.arrays[name][row] = value
        for name in self.layout.loose:
            if name not in sample:
                raise OptionError(f"a sample without {name!r}: it has {', '.join(sample)}; other samples have it")
            value = sample[name]
            # A view would keep more alive than the sample, such as the memory that it was decoded into.
            self.loose[name][row] = value.copy() if isinstance(value, np.ndarray) and value.base is not None else value

    def scatter(self, places: NDArray[Any], made: Rows) -> None:
        """Put rows that were made elsewhere at these places."""
        for name, array in made.arrays.items():
            self.arrays[name][places] = array
        for name, values in made.loose.items():
            for place, value in zip(places.tolist(), values, strict=True):
                self.loose[name][place] = value


class _ListPart:
    """A stretch of a list, for writing."""

    def __init__(self, values: Any, start: int) -> None:
        self._values, self._start = values, start

    def __setitem__(self, position: int, value: Any) -> None:
        self._values[self._start + position] = value


def _array(name: str, value: Any) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except ValueError as error:  # lists of different lengths
        raise OptionError(f"{name!r} cannot become an array: {error}") from error


def _fits(value: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Whether a value of another type can stand among these; a number never turns into another one."""
    if np.can_cast(value.dtype, dtype, "safe"):
        return True
    if not np.can_cast(value.dtype, dtype, "same_kind"):
        return False
    with np.errstate(over="ignore"):
        cast = value.astype(dtype)
    if dtype.kind in "fc":  # rounded, but not to infinity
        return bool((np.isfinite(cast) == np.isfinite(value)).all())
    return bool((cast == value).all())


def _unlike(name: str, value: NDArray[Any], shape: tuple[int, ...], dtype: Any) -> str:
    return (
        f"{name!r} is {_words(value.shape)} {value.dtype} here and {_words(shape)} {dtype} in other samples. Make them "
        'equal (augment.Resize, augment.CenterCrop), or use batch(…, shapes="padded") or shapes="ragged"'
    )


def _words(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "one"


# Rows to batches: what has no fixed size is padded to the largest, or kept as pieces of their own.


class Ragged(Sequence[Any]):
    """Arrays of different lengths, one for each sample of a batch, as one array and where each begins.

    `values` are all of them one after another, sample i is `values[offsets[i]:offsets[i + 1]]`. Arrays that differ in
    more than their length (images of different sizes) have no `values` and are a plain sequence.
    """

    def __init__(self, pieces: Sequence[NDArray[Any]]) -> None:
        self._pieces = [np.asarray(piece) for piece in pieces]

    def __len__(self) -> int:
        return len(self._pieces)

    def __getitem__(self, position: Any) -> Any:
        return self._pieces[position]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pieces)

    def __repr__(self) -> str:
        return f"<Ragged: {len(self)} arrays>"

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.array([len(piece) for piece in self._pieces], np.int64)

    @property
    def offsets(self) -> NDArray[np.int64]:
        offsets: NDArray[np.int64] = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)
        return offsets

    @property
    def values(self) -> NDArray[Any]:
        if len({(piece.shape[1:], piece.dtype) for piece in self._pieces}) > 1:
            raise OptionError("these arrays differ in more than their length; use them one by one.")
        return np.concatenate(self._pieces)


def collated(arrays: dict[str, NDArray[Any]], loose: dict[str, list[Any]], batch: Batch) -> dict[str, Any]:
    """The batch as users get it; texts are lists."""
    finished: dict[str, Any] = dict(arrays)
    for name, values in loose.items():
        if any(not isinstance(value, np.ndarray) and not np.isscalar(value) for value in values) or _is_text(values):
            finished[name] = values
        elif batch.shapes == "padded":
            pieces = [np.asarray(value) for value in values]
            _check_fill(name, pieces, batch.fill)
            finished[name], finished[f"{name}_size"] = padded(pieces, batch.fill)
        else:
            finished[name] = Ragged([np.asarray(value) for value in values])
    return finished


def _is_text(values: list[Any]) -> bool:
    return any(isinstance(value, (str, bytes)) for value in values)


def _check_fill(name: str, pieces: list[NDArray[Any]], fill: float) -> None:
    """Padding must be told from nothing else, so it is never turned into another number."""
    if len({piece.shape for piece in pieces}) < 2:
        return
    dtype = np.result_type(*pieces)
    with np.errstate(invalid="ignore"):
        is_kept = dtype.kind in "fc" or np.asarray(fill).astype(dtype) == fill
    if not is_kept:
        raise OptionError(
            f"batch(fill={fill}): {name!r} is {dtype}, which cannot hold {fill}. Use a fill that all padded fields "
            "can hold, or change the type of the field in a map."
        )


def padded(pieces: Sequence[NDArray[Any]], fill: float) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """All pieces in the size of the largest, at its beginning; and what size each has."""
    if not pieces:
        return np.zeros(0), np.zeros((0, 1), np.int64)
    sizes = np.array([piece.shape for piece in pieces], np.int64).reshape(len(pieces), -1)
    out = np.full((len(pieces), *sizes.max(axis=0).tolist()), fill, np.result_type(*pieces))
    for row, piece in enumerate(pieces):
        out[row][tuple(slice(0, size) for size in piece.shape)] = piece
    return out, sizes
