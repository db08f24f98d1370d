"""`HuggingFace`: `save_to_disk` folders and plain Arrow files, mapped; `datasets` itself is not needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.errors import DataError, Problem
from penstock.formats.arrow.arrow_columns import ArrowColumn, below
from penstock.formats.arrow.arrow_types import leaves
from penstock.formats.columns.column_source import ColumnSource
from penstock.formats.columns.mapped_files import mapped_bytes
from penstock.formats.columns.options import column_options
from penstock.formats.columns.split_names import split_of_file
from penstock.formats.columns.tables import Numbers, Table
from penstock.formats.paths import PathLike, expand, natural
from penstock.storage.documents import load_json
from penstock.storage.locations import refuses_urls
from penstock.storage.plain_files import read_text
from penstock.wording import counted

if TYPE_CHECKING:
    import pyarrow as pa

DICT_FILE, STATE_FILE = "dataset_dict.json", "state.json"
ARROW_MAGIC = b"ARROW1"


class HuggingFace(ColumnSource):
    """A dataset that Hugging Face wrote, or Arrow files (stream or file format) of any other writer.

    path     a folder of `Dataset.save_to_disk` or `DatasetDict.save_to_disk`, a folder of .arrow files, or such files
    columns  options of columns (`ColumnOptions`): image, label, boxes, fields, classes, …

    Images, names of classes and shapes are known from what `datasets` notes in the files. The splits of a DatasetDict
    are the splits of the samples. Reading an image is a slice of the mapped file.
    """

    @refuses_urls()
    def __init__(self, path: PathLike | Sequence[PathLike], **columns: Any) -> None:
        options = column_options("HuggingFace", columns)
        paths = [one.absolute() for one in expand(path)]
        parts = [part for one in paths for part in _parts(one)]
        tables = [_table(part, len(parts) > 1) for part in parts]
        super().__init__(tables, options, {"path": paths, **columns}, {"path": path, **columns})


class _Part(NamedTuple):
    file: Path
    split: str | None


def _parts(path: Path) -> list[_Part]:
    """The Arrow files in the order of their rows."""
    if path.is_file():
        return [_Part(path, split_of_file(path.stem))]
    if (path / DICT_FILE).is_file():
        splits = _listed(path / DICT_FILE, "splits")
        return [_Part(file, split) for split in splits for file in _saved_files(path / Path(str(split)).name)]
    if (path / STATE_FILE).is_file():
        split = _json(path / STATE_FILE).get("_split")
        return [_Part(file, split if isinstance(split, str) else None) for file in _saved_files(path)]
    files = sorted(path.glob("*.arrow"), key=lambda file: natural(file.name))
    if not files:
        what = f"there is neither {DICT_FILE} nor {STATE_FILE} nor an .arrow file in it"
        raise DataError([Problem(str(path), None, what, "Pass the folder that save_to_disk wrote")])
    return [_Part(file, split_of_file(file.stem)) for file in files]


def _saved_files(folder: Path) -> list[Path]:
    state = _json(folder / STATE_FILE)
    if state.get("_indices_data_files"):
        what = "it holds a selection of rows as a list beside the data, as old versions of datasets wrote it"
        remedy = "Load it with datasets, call flatten_indices() and save_to_disk again"
        raise DataError([Problem(str(folder), None, what, remedy)])
    entries = _listed(folder / STATE_FILE, "_data_files")
    if not all(isinstance(entry, dict) and isinstance(entry.get("filename"), str) for entry in entries):
        raise _unreadable(folder / STATE_FILE, "_data_files does not name files")
    names = [Path(entry["filename"]).name for entry in entries]
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        what = f"{len(missing)} of its {counted(len(names), 'file', 'is')} missing, the first {missing[0]}"
        raise DataError([Problem(str(folder), None, what, "Copy the whole folder")])
    return [folder / name for name in names]


def _json(path: Path) -> dict[str, Any]:
    try:
        found = load_json(read_text(path))
    except (OSError, ValueError) as error:
        raise _unreadable(path, str(error)) from error
    return found if isinstance(found, dict) else {}


def _listed(path: Path, name: str) -> list[Any]:
    found = _json(path).get(name) or []
    if not isinstance(found, list):
        raise _unreadable(path, f"{name} is not a list")
    return found


def _unreadable(path: Path, why: str) -> DataError:
    return DataError([Problem(str(path), None, f"it cannot be read ({why})", "Save the dataset again")])


def _batches(file: Path) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    """The record batches over mapped memory."""
    import pyarrow as pa

    data = mapped_bytes(file)
    try:
        if bytes(data[: len(ARROW_MAGIC)]) == ARROW_MAGIC:
            reader: Any = pa.ipc.open_file(pa.py_buffer(data))
            batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
        else:
            reader = pa.ipc.open_stream(pa.py_buffer(data))
            batches = list(reader)
        names = reader.schema.names
        if len(set(names)) < len(names):
            raise ValueError(f"two columns are called {next(name for name in names if names.count(name) > 1)!r}")
        return reader.schema, batches
    # pyarrow raises KeyError for types that it does not know, ValueError for names that are not UTF-8.
    except (pa.ArrowException, OSError, EOFError, KeyError, ValueError) as error:
        what = f"it cannot be read as Arrow ({error})"
        raise DataError(
            [Problem(str(file), None, what, "It is cut short or of another kind; save it again")]
        ) from error


def _table(part: _Part, is_one_of_several: bool) -> Table:
    schema, batches = _batches(part.file)
    columns = {
        leaf.name: ArrowColumn(
            [below(batch.column(leaf.path[0]), leaf.path[1:], leaf.holds) for batch in batches],
            leaf.holds,
            str(part.file),
        )
        for leaf in leaves(schema)
    }
    starts = np.cumsum([0] + [len(batch) for batch in batches]).astype(np.int64)

    def batch_of(rows: Numbers) -> Numbers:
        return np.searchsorted(starts, rows, side="right").astype(np.int64) - 1

    title = "/".join(word for word in (part.split, part.file.stem) if word) if is_one_of_several else ""
    return Table(title, str(part.file), int(starts[-1]), columns, part.split, blocks=batch_of)
