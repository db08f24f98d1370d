"""Datasets of an HDF5 file that grow by rows: what each takes from a row, and how it is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.formats.exporting.pieces import Brief, Piece
from penstock.samples import Field
from penstock.storage.writing.preparing import Row

# Chunks of about this size are read at once without waste.
CHUNK_BYTES = 64 << 10


@dataclass(frozen=True)
class Column:
    """A dataset: its name, the shape and type of one row, whether rows differ in length, and where values come from.

    `columns` is an attribute: what varies are rows of so many numbers, one after another.
    """

    name: str
    dtype: np.dtype[Any] | type[str]
    shape: tuple[int, ...]
    varies: bool
    value: Callable[[Row], Any]
    columns: int = 0

    def create(self, file: Any) -> None:
        import h5py

        dtype: Any = h5py.string_dtype() if self.dtype is str else self.dtype
        if self.varies:
            dtype = h5py.vlen_dtype(self.dtype)
        row_bytes = 16 if self.varies or self.dtype is str else int(np.prod(self.shape)) * np.dtype(dtype).itemsize
        rows = max(1, min(1024, CHUNK_BYTES // max(row_bytes, 1)))
        made = file.create_dataset(
            self.name, (0, *self.shape), dtype, maxshape=(None, *self.shape), chunks=(rows, *self.shape)
        )
        if self.columns:
            made.attrs["columns"] = np.int64(self.columns)

    def append(self, file: Any, rows: Sequence[Row]) -> None:
        if not rows:
            return
        dataset = file[self.name]
        start = len(dataset)
        dataset.resize(start + len(rows), axis=0)
        values = [self.value(row) for row in rows]
        if self.varies:
            self._write_ragged(dataset, start, values)
        elif self.dtype is str:
            dataset[start:] = values
        else:
            dataset[start:] = np.stack([np.asarray(value, self.dtype).reshape(self.shape) for value in values])

    def _write_ragged(self, dataset: Any, start: int, values: Sequence[Any]) -> None:
        """By h5py's lower level: the upper one takes rows that happen to have one length for a table."""
        import h5py

        ragged: NDArray[Any] = np.empty(len(values), dataset.dtype)
        for number, value in enumerate(values):
            ragged[number] = np.asarray(value, self.dtype).reshape(-1)
        place = dataset.id.get_space()
        place.select_hyperslab((start,), (len(values),))
        dataset.id.write(h5py.h5s.create_simple((len(values),)), place, ragged)


def encoded_column(name: str) -> Column:
    """The bytes of image files."""
    return Column(name, np.dtype(np.uint8), (), True, lambda row: np.frombuffer(row.payload, np.uint8))


def pixel_column(name: str, first: Row) -> Column:
    """Pixels; all images must have the size of the first."""
    height, width = first.height, first.width

    def value(row: Row) -> NDArray[np.uint8]:
        if (row.height, row.width) != (height, width):
            raise OptionError(
                f"codec raw needs one size for all images: {row.values['key']} has {row.width}x{row.height} px and the "
                f"first had {width}x{height}. Pass size='WIDTHxHEIGHT', or use another codec."
            )
        return np.frombuffer(row.payload, np.uint8).reshape(height, width, 3)

    return Column(name, np.dtype(np.uint8), (height, width, 3), False, value)


def columns_of(brief: Brief, piece: Piece) -> list[Column]:
    """Every field but the image, and where samples belong."""
    found = [Column("key", str, (), False, lambda row: str(row.values["key"]))]
    found += [_place_column(brief, piece, number) for number in range(len(brief.place_names))]
    for field in brief.schema.fields:
        if field != brief.roles.image:
            found += _field_columns(field)
    return found


def _place_column(brief: Brief, piece: Piece, number: int) -> Column:
    return Column(brief.place_names[number], str, (), False, lambda row: brief.places_of(piece, row)[number])


def _field_columns(field: Field) -> list[Column]:
    def value(row: Row) -> Any:
        return row.values[field.name]

    if field.kind == "text":
        return [Column(field.name, str, (), False, value)]
    if field.kind in ("mask", "image"):
        return [
            Column(
                field.name, np.dtype(np.uint8), (), True, lambda row: np.frombuffer(row.values[field.name], np.uint8)
            )
        ]
    dtype = np.dtype({"class": "int64", "boxes": "float32"}.get(field.kind, field.dtype or "float64"))
    if field.kind in ("class", "number"):
        return [Column(field.name, dtype, (), False, value)]
    if field.kind != "boxes" and field.shape is not None and None not in field.shape:
        return [Column(field.name, dtype, tuple(side or 0 for side in field.shape), False, value)]
    found = [Column(field.name, dtype, (), True, value, 4 if field.kind == "boxes" else 0)]
    if field.kind == "array":
        sides = (len(field.shape or ()),)
        found.append(
            Column(
                f"{field.name}_shape", np.dtype(np.int64), sides, False, lambda row: np.shape(row.values[field.name])
            )
        )
    return found
