"""`HDF5`: arrays, encoded images and frame files as a Source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.errors import DataError, Problem
from penstock.formats.columns.column_source import ColumnSource
from penstock.formats.columns.grouped_arrays import Named, tables_of
from penstock.formats.columns.options import ColumnOptions, column_options
from penstock.formats.columns.tables import Table
from penstock.formats.hdf5.hdf5_columns import named_columns
from penstock.formats.hdf5.hdf5_doors import DAMAGE
from penstock.formats.hdf5.hdf5_files import Hdf5File, LockWait, open_hdf5
from penstock.formats.paths import PathLike, expand, files_below
from penstock.storage.locations import readable_name, refuses_urls

HDF5_ENDINGS = (".h5", ".hdf5", ".he5", ".hdf")
# DeepEthogram's files hold this dataset and nothing else; its writer hands RGB to an encoder that takes BGR.
FRAMES = "frame"


class HDF5(ColumnSource):
    """Datasets of HDF5 files, one row a sample.

    paths    a file, a pattern, a list of them, or a folder
    columns  options of columns (`ColumnOptions`): image, label, fields, classes, layout, channels, …

    `X` and `y`, `images` and `labels`, `x_train` and `y_train`, `train/images` … are recognised by name. Images are
    pixels (see `Arrays`) or encoded (variable-length uint8). Frame files of DeepEthogram, which have a dataset `frame`
    of encoded images and no other, give one sample a frame; the file is the group, and red and blue are put right.

    Datasets that are neither compressed nor cut across rows are mapped and read without h5py. Everything else goes
    through h5py, where one thread reads at a time; `flow.explain()` says what that costs.
    """

    @property
    def lock_name(self) -> str:
        return "h5py's lock (one thread of a process reads at a time)"

    @refuses_urls()
    def __init__(self, paths: PathLike | Sequence[PathLike], **columns: Any) -> None:
        options = column_options("HDF5", columns)
        files = hdf5_paths(paths)
        self._lock_wait = LockWait()
        opened = _opened(files, self._lock_wait)
        is_frames = all(set(found) == {FRAMES} and _holds_bytes(found[FRAMES]) for found in opened)
        if is_frames and options.channels == "auto":
            options = replace(options, channels="bgr")
        tables = _tables(files, opened, options, is_frames)
        super().__init__(tables, options, {"paths": files, **columns}, {"paths": paths, **columns})

    def lock_wait_seconds(self) -> float:
        """How long the calling thread has waited for h5py's lock."""
        return self._lock_wait.seconds()


def hdf5_paths(paths: PathLike | Sequence[PathLike]) -> list[Path]:
    """The files that are meant; a folder means those in it."""
    found: list[Path] = []
    for path in expand(paths):
        inside = files_below(path, HDF5_ENDINGS) if path.is_dir() else [path]
        if not inside:
            raise DataError([Problem(str(path), None, f"there is no {HDF5_ENDINGS[0]} file in it", "Name the files")])
        found += [file.absolute() for file in inside]
    return found


def _opened(files: Sequence[Path], wait: LockWait) -> list[dict[str, Named]]:
    """The datasets of every file; all files that cannot be opened are said at once."""
    found: list[dict[str, Named]] = []
    problems: list[Problem] = []
    for file in files:
        try:
            with open_hdf5(file) as handle:
                found.append(named_columns(Hdf5File(file, wait), handle))
        except DataError as error:
            problems += error.problems
        except DAMAGE as error:
            what = f"its datasets cannot be read ({error or type(error).__name__})"
            problems.append(Problem(str(file), None, what, "It is damaged; write it again"))
    if problems:
        raise DataError(problems)
    return found


def _holds_bytes(named: Named) -> bool:
    return named.column.holds.what == "bytes"


def _tables(
    files: Sequence[Path], opened: Sequence[dict[str, Named]], options: ColumnOptions, is_frames: bool
) -> list[Table]:
    tables: list[Table] = []
    problems: list[Problem] = []
    for file, arrays in zip(files, opened, strict=True):
        name = readable_name(file.stem)
        title = name if len(files) > 1 or is_frames else ""
        try:
            tables += tables_of(title, str(file), arrays, options, name if is_frames else None)
        except DataError as error:
            problems += error.problems
    if problems:
        raise DataError(problems)
    return tables
