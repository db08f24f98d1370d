"""`Arrays`: NumPy arrays as a Source."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, OptionError, Problem
from penstock.formats.columns.column_source import ColumnSource
from penstock.formats.columns.grouped_arrays import Named, tables_of
from penstock.formats.columns.options import ColumnOptions, column_options
from penstock.formats.columns.tables import ArrayColumn, Table
from penstock.formats.numpy.npy_files import load_npy, load_npz
from penstock.formats.paths import PathLike, expand
from penstock.storage.locations import refuses_urls

Given = NDArray[Any] | Mapping[str, Any] | PathLike | Sequence[PathLike]


class Arrays(ColumnSource):
    """Arrays in memory, or `.npy` and `.npz` files; the first axis counts samples.

    images   an array, {name: array}, .npy or .npz files, a pattern, or a folder of .npy files named after columns
    labels   an array or .npy file with one row a sample; only where `images` is one array
    columns  options of columns (`ColumnOptions`): image, label, fields, classes, layout, …

    Images are uint8: N×H×W and N×H×W×1 are grey, N×H×W×3 RGB, and N×3×H×W is recognised. Any other type, such as
    float32, becomes a field `image` of kind array with its values as they are. Files are mapped, except compressed
    members of .npz, which are read once. Pickled objects are refused.
    """

    @refuses_urls()
    def __init__(
        self, images: Given, labels: NDArray[Any] | Sequence[Any] | PathLike | None = None, **columns: Any
    ) -> None:
        options = column_options("Arrays", columns)
        told = {"images": images, "labels": labels, **columns}
        if isinstance(images, Mapping) or _is_array(images):
            tables = _in_memory(images, labels, options)
        else:
            paths = [path.absolute() for path in expand(images)]  # type: ignore[arg-type]
            labels = Path(labels).absolute() if isinstance(labels, str | os.PathLike) else labels
            tables = _in_files(paths, labels, options)
            images = [*paths]
        super().__init__(tables, options, {"images": images, "labels": labels, **columns}, told)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or (hasattr(value, "__array__") and not isinstance(value, str | os.PathLike))


def _in_memory(images: Any, labels: Any, options: ColumnOptions) -> list[Table]:
    if isinstance(images, Mapping):
        if labels is not None:
            raise OptionError("labels belongs to one array of images; here are several by name: put it among them.")
        return tables_of("", None, {name: _named(value, name) for name, value in images.items()}, options)
    return tables_of("", None, _pair(np.asarray(images), labels), options)


def _pair(images: NDArray[Any], labels: Any) -> dict[str, Named]:
    arrays = {"image": _named(images, "images")}
    if labels is not None:
        labels = load_npy(Path(labels)) if isinstance(labels, str | os.PathLike) else labels
        arrays["label"] = _named(labels, "labels")
    return arrays


def _named(value: Any, name: str, file: str = "arrays") -> Named:
    array = np.asarray(value)
    if array.dtype.kind == "O" and all(isinstance(one, str) for one in array.ravel()):
        array = array.astype(np.str_)
    if array.dtype.kind not in "biufUST":
        what = f"{name} holds {array.dtype}, and an array of numbers or texts is expected"
        raise DataError([Problem(file, None, what, "Stack images of one size: np.stack(list_of_arrays)")])
    if array.ndim == 0:
        raise DataError(
            [Problem(file, None, f"{name} is a single value", "Pass an array whose first axis counts samples")]
        )
    return Named(len(array), ArrayColumn(array))


def _in_files(paths: list[Path], labels: Any, options: ColumnOptions) -> list[Table]:
    tables = []
    for path in paths:
        title = "" if len(paths) == 1 else path.stem
        tables += tables_of(
            title, str(path if path.is_file() else _first(path)), _arrays(path, labels, len(paths)), options
        )
    return tables


def _first(folder: Path) -> Path:
    return sorted(folder.glob("*.npy"))[0]


def _arrays(path: Path, labels: Any, count: int) -> dict[str, Named]:
    if path.is_dir():
        found = {file.stem: load_npy(file) for file in sorted(path.glob("*.npy"))}
        if not found:
            raise DataError([Problem(str(path), None, "there is no .npy file in it", "Name .npy or .npz files")])
    elif path.suffix.lower() == ".npz":
        found = load_npz(path)
    else:
        array = load_npy(path)
        if labels is not None and count > 1:
            raise OptionError(f"labels belongs to one file of images, and here are {count:,}.")
        if labels is not None or array.ndim > 1:
            return _pair(array, labels)
        found = {path.stem: array}
    if labels is not None:
        raise OptionError("labels belongs to one .npy file of images; a .npz file and a folder name theirs.")
    return {name: _named(array, name, str(path)) for name, array in found.items()}
