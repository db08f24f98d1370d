"""What a batch looks like before it is made: which fields have a place of fixed size in a slot, which are loose."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
