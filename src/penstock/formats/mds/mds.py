"""`MDS`: datasets of MosaicML Streaming as a Source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, Problem
from penstock.formats.columns.column_source import ColumnSource
from penstock.formats.columns.kept import Kept
from penstock.formats.columns.mapped_files import mapped_bytes
from penstock.formats.columns.options import column_options
from penstock.formats.columns.tables import Numbers, Places, Table
from penstock.formats.mds.mds_encodings import Encoding, encoding_of
from penstock.formats.mds.mds_shards import Shard, ShardEntry, StoredFile, missing_files, wrong_hash
from penstock.formats.paths import PathLike, unsafe
from penstock.samples.store import objects
from penstock.storage.documents import load_json
from penstock.storage.locations import refuses_urls
from penstock.storage.plain_files import read_text

INDEX = "index.json"


class MDS(ColumnSource):
    """A folder of MDS shards with its index.json, or a folder of such folders, whose names are then the splits.

    folder   as MDSWriter wrote it; shards are mapped, and compressed ones (zstd, gz, br, bz2, snappy) are
             decompressed as they are needed, the last ones kept (256 MiB in all)
    verify   compare the hashes of index.json when a shard is first used; `check` always does
    columns  options of columns (`ColumnOptions`): image, label, fields, classes, …

    Pickled columns are left out: reading them would run code from the file.
    """

    @refuses_urls()
    def __init__(self, folder: PathLike, *, verify: bool = False, **columns: Any) -> None:
        options = column_options("MDS", columns)
        root = Path(folder).absolute()
        self._entries = {home: read_index(home) for home in _homes(root)}
        missing = [problem for entries in self._entries.values() for problem in missing_files(entries)]
        if missing:
            raise DataError(missing)
        kept: Kept[Shard] = Kept()
        tables = [
            _table(home, ShardRows(entry, verify, kept), home != root)
            for home, entries in self._entries.items()
            for entry in entries
            if entry.samples
        ]
        super().__init__(tables, options, {"folder": root, "verify": verify, **columns}, {"folder": folder, **columns})

    def damage(self) -> list[Problem]:
        """Shards whose bytes are not those that were written, as far as index.json has hashes."""
        problems = []
        for entry in (entry for entries in self._entries.values() for entry in entries):
            file = entry.packed if entry.packed is not None and entry.file == entry.packed.path else entry.raw
            wrong = wrong_hash(file, mapped_bytes(file.path, file.size))
            if wrong:
                problems.append(Problem(str(file.path), None, wrong, "It is damaged; copy it again"))
        return problems


def _homes(root: Path) -> list[Path]:
    if (root / INDEX).is_file():
        return [root]
    found = sorted(path.parent for path in root.glob(f"*/{INDEX}"))
    if not found:
        what = f"there is no {INDEX} in it, nor in a folder below"
        raise DataError([Problem(str(root), None, what, "Pass the folder that MDSWriter wrote")])
    return found


def read_index(home: Path) -> list[ShardEntry]:
    """The shards that index.json lists."""
    path = home / INDEX
    try:
        values = load_json(read_text(path))
        found = [_entry(home, item) for item in values["shards"]]
    except (OSError, ValueError) as error:
        raise DataError(
            [Problem(str(path), None, f"it cannot be read ({error})", "Write the dataset again")]
        ) from error
    except (KeyError, TypeError) as error:
        what = f"it is not an index of MDS shards: {error!r} is missing or of another kind"
        raise DataError([Problem(str(path), None, what, "Pass the folder that MDSWriter wrote")]) from error
    return found


def _entry(home: Path, item: Mapping[str, Any]) -> ShardEntry:
    if item["format"] != "mds" or item["version"] != 2:
        raise ValueError(f"format {item['format']!r} version {item['version']} is not read, only mds version 2")
    columns = [item[name] for name in ("column_names", "column_encodings", "column_sizes")]
    if not all(isinstance(one, list) for one in columns) or len({len(one) for one in columns}) > 1:
        raise ValueError("column_names, column_encodings and column_sizes are not lists of one length")
    if not all(isinstance(name, str) for name in (*columns[0], *columns[1])):
        raise ValueError("a column has no name or no encoding")
    if not all(size is None or (type(size) is int and size >= 0) for size in columns[2]):
        raise ValueError("a size of a column is no number")
    raw = _stored(home, item["raw_data"])
    packed = item.get("zip_data")
    return ShardEntry(
        int(item["samples"]),
        tuple(columns[0]),
        tuple(columns[1]),
        tuple(columns[2]),
        raw,
        _stored(home, packed) if packed else None,
        item.get("compression") or "",
    )


def _stored(home: Path, item: Mapping[str, Any]) -> StoredFile:
    name = str(item["basename"])
    if unsafe(name):
        raise ValueError(f"{name!r} leads out of the folder")
    return StoredFile(home / name, int(item["bytes"]), dict(item.get("hashes") or {}))


class ShardRows:
    """A shard that is opened on first use; mapped ones stay, decompressed ones are kept for a while."""

    def __init__(self, entry: ShardEntry, verify: bool, kept: Kept[Shard]) -> None:
        self.entry, self._verify, self._kept = entry, verify, kept
        self._is_plain = entry.file == entry.raw.path
        self._mapped: Shard | None = None

    def shard(self) -> Shard:
        if self._mapped is not None:
            return self._mapped
        if not self._is_plain:
            return self._kept.get(self.entry.raw.path, lambda: (Shard(self.entry, self._verify), self.entry.raw.size))
        # Two threads may map it at once; the later one wins and nothing is lost.
        self._mapped = Shard(self.entry, self._verify)
        return self._mapped


class MdsColumn:
    """One column of a shard."""

    def __init__(self, rows: ShardRows, column: int, encoding: Encoding) -> None:
        self._rows, self._column, self._encoding = rows, column, encoding
        self.holds = encoding.holds

    def value(self, row: int) -> Any:
        return self._encoding.decode(self._rows.shard().value(self._column, row))

    def values(self, rows: Numbers) -> NDArray[Any] | None:
        return self._all()[rows] if self._is_fixed else None

    @property
    def _is_fixed(self) -> bool:
        return bool(self._encoding.dtype)

    def _all(self) -> NDArray[Any]:
        shape = tuple(side or 0 for side in self.holds.shape)
        return self._rows.shard().numbers(self._column, self._encoding.dtype).reshape(-1, *shape)

    def whole(self) -> NDArray[Any]:
        if self._is_fixed:
            return self._all()
        values = [self.value(row) for row in range(self._rows.entry.samples)]
        is_number = self.holds.what == "array" and self.holds.shape == ()
        return np.array(values, self.holds.dtype) if is_number else objects(values)

    def flat(self) -> NDArray[Any]:
        found = self.whole()
        return np.concatenate([one.reshape(-1) for one in found]) if found.dtype.kind == "O" else found.reshape(-1)

    def places(self, rows: Numbers) -> Places | None:
        return None


def _table(home: Path, rows: ShardRows, is_split: bool) -> Table:
    entry = rows.entry
    columns = {}
    for column, (name, encoding) in enumerate(zip(entry.names, entry.encodings, strict=True)):
        try:
            columns[name] = MdsColumn(rows, column, encoding_of(encoding, _first(rows, column, encoding)))
        except ValueError as error:
            what = f"the first value of column {name!r} cannot be read ({error})"
            raise DataError([Problem(str(entry.file), None, what, "It is damaged; copy it again")]) from error
    split = home.name if is_split else None
    title = f"{home.name}/{entry.raw.path.stem}" if is_split else entry.raw.path.stem
    return Table(title, str(entry.file), entry.samples, columns, split)


def _first(rows: ShardRows, column: int, encoding: str) -> memoryview | None:
    """The first value, where the encoding needs it to know its type."""
    return rows.shard().value(column, 0) if encoding.startswith(("ndarray", "pil")) else None
