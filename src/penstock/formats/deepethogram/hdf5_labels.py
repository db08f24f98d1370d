"""Labels that DeepEthogram keeps in HDF5: a dataset `labels` or `scores` of frames × behaviours, without names."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from penstock.errors import DataError, Problem
from penstock.formats.hdf5.hdf5_doors import DAMAGE, open_hdf5_file
from penstock.formats.tables import Table
from penstock.formats.videos.frame_labels import BACKGROUND
from penstock.wording import counted

DATASETS = ("labels", "scores")


def read_hdf5_labels(path: Path, classes: tuple[str, ...]) -> Table:
    """The matrix as a table whose columns are the behaviours of the project."""
    try:
        with open_hdf5_file(path, "Reading labels in HDF5") as file:
            name = next((name for name in DATASETS if name in file), None)
            values = None if name is None else np.asarray(file[name][()])
            there = ", ".join(file) or "none"
    except DAMAGE as error:
        raise _wrong(path, f"cannot be opened as HDF5 ({error or type(error).__name__})") from error
    if values is None:
        raise _wrong(path, f"has no dataset {' or '.join(DATASETS)}; there are {there}")
    return _table(path, _upright(path, values), classes)


def _upright(path: Path, values: np.ndarray) -> np.ndarray:
    """Frames × behaviours; there are more frames than behaviours, so a wide matrix lies on its side."""
    if values.dtype.kind not in "biuf" or values.ndim not in (1, 2):
        raise _wrong(path, f"its labels are {values.dtype} of shape {values.shape}, not a matrix of numbers")
    if values.ndim == 1:
        return values[:, None]
    return values.T if values.shape[1] > values.shape[0] else values


def _table(path: Path, values: np.ndarray, classes: tuple[str, ...]) -> Table:
    """Columns by their place; where there is one column too few, it is the background."""
    others = tuple(name for name in classes if name != BACKGROUND)
    names = {len(classes): classes, len(others): others}.get(values.shape[1])
    if names is None:
        what = (
            f"it has labels of {counted(values.shape[1], 'behaviour')}, and the project has "
            f"{len(classes)}: {', '.join(classes)}"
        )
        raise _wrong(path, what)
    columns = {name: values[:, place].astype(np.float64) for place, name in enumerate(names)}
    return Table(path.as_posix(), path.parent, columns, np.arange(len(values), dtype=np.int64))


def _wrong(path: Path, what: str) -> DataError:
    return DataError([Problem(path.as_posix(), None, what, "Export the labels of this video again, best as CSV")])
