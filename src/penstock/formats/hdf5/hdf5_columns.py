"""Datasets of an HDF5 file as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.formats.columns.grouped_arrays import Named
from penstock.formats.columns.tables import ArrayColumn, Column, Holds, Numbers, Places
from penstock.formats.hdf5.hdf5_files import Hdf5File
from penstock.formats.hdf5.hdf5_places import mapped_column

# Datasets up to this size are read once: labels, numbers, names.
SMALL_BYTES = 16 << 20
SMALL_TEXTS = 1_000_000


def named_columns(file: Hdf5File, handle: Any) -> dict[str, Named]:
    """Every dataset below the root that has rows, by its path."""
    import h5py

    found: dict[str, Named] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.shape is not None and item.ndim:
            found[name] = Named(len(item), _column(file, name, item))

    handle.visititems(visit)
    return found


def _column(file: Hdf5File, name: str, dataset: Any) -> Column:
    import h5py

    if h5py.check_string_dtype(dataset.dtype) is not None and dataset.ndim == 1 and len(dataset) <= SMALL_TEXTS:
        return ArrayColumn(np.array(dataset.asstr()[()], object))
    inner = h5py.check_vlen_dtype(dataset.dtype)
    if inner is not None and dataset.ndim == 1:
        return Hdf5Column(file, name, _vlen_holds(inner, int(dataset.attrs.get("columns", 0))))
    if dataset.dtype.kind not in "biuf" or dataset.dtype.itemsize > 8:
        return Hdf5Column(file, name, Holds("other", note=f"it holds {dataset.dtype}, which no field can hold"))
    mapped = mapped_column(file.path, dataset)
    if mapped is not None:
        return mapped
    if dataset.nbytes <= SMALL_BYTES:
        return ArrayColumn(dataset[()])
    return Hdf5Column(file, name, Holds("array", dataset.dtype.name, dataset.shape[1:]))


def _vlen_holds(inner: Any, columns: int) -> Holds:
    """Lists of numbers; an attribute `columns`, as exports write it for boxes, says that they are rows of so many."""
    if inner == np.uint8 or inner == np.int8:
        return Holds("bytes")
    if inner.kind in "biuf":
        return Holds("array", inner.name, (None, columns) if columns else (None,))
    return Holds("other", note=f"it holds lists of {inner}, which no field can hold")


class Hdf5Column:
    """A dataset that is read row by row through h5py."""

    def __init__(self, file: Hdf5File, name: str, holds: Holds) -> None:
        self._file, self._name, self.holds = file, name, holds

    def value(self, row: int) -> Any:
        found = self._file.read(self._name, row)
        if self.holds.what == "bytes":
            return np.ascontiguousarray(found).view(np.uint8).data
        return found.reshape(-1, *self.holds.shape[1:]) if self.holds.shape[:1] == (None,) else found

    def values(self, rows: Numbers) -> NDArray[Any] | None:
        if self.holds.what != "array" or None in self.holds.shape:
            return None
        # h5py wants ascending numbers without repetition
        unique, back = np.unique(rows, return_inverse=True)
        found: NDArray[Any] = np.asarray(self._file.read(self._name, unique))[back]
        return found

    def whole(self) -> NDArray[Any]:
        found: NDArray[Any] = np.asarray(self._file.read(self._name, ()))
        return found

    def flat(self) -> NDArray[Any]:
        found = self.whole()
        return np.concatenate([np.asarray(one) for one in found]) if found.dtype.kind == "O" else found.reshape(-1)

    def places(self, rows: Numbers) -> Places | None:
        return None
