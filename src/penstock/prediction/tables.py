"""Tables that are written while they come about: CSV, JSON lines or Parquet; whole or absent."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.errors import OptionError
from penstock.runs.layout import plain
from penstock.storage.whole_files import whole_file

Rows = Sequence[Mapping[str, Any]]
ENDINGS = (".csv", ".jsonl", ".parquet")


def check_table_name(path: str | Path) -> None:
    """Refuse a name whose ending says of no table what it is."""
    if Path(path).suffix not in ENDINGS:
        raise OptionError(f"output={str(path)!r} must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}.")
    if not Path(path).absolute().parent.is_dir():
        raise OptionError(f"output={str(path)!r}: there is no folder {Path(path).parent}. Make it first.")


def write_table(path: str | Path, batches: Iterable[Rows], columns: Sequence[str] = ()) -> Path:
    """Write rows as they come, and give the file its name when the last one is there.

    `columns` are those of a table without rows.
    """
    check_table_name(path)
    write = {".csv": _csv, ".jsonl": _json_lines, ".parquet": _parquet}[Path(path).suffix]
    with whole_file(path) as partial:
        write(partial, (rows for rows in batches if rows), columns)
    return Path(path)


def _csv(path: Path, batches: Iterator[Rows], columns: Sequence[str]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = None
        for rows in batches:
            if writer is None:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
            writer.writerows(rows)
        if writer is None and columns:
            csv.DictWriter(file, columns).writeheader()


def _json_lines(path: Path, batches: Iterator[Rows], columns: Sequence[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for rows in batches:
            file.writelines(json.dumps(plain(row), ensure_ascii=False) + "\n" for row in rows)


def _parquet(path: Path, batches: Iterator[Rows], columns: Sequence[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    writer = None
    try:
        for rows in batches:
            schema = _schema(rows[0], pa) if writer is None else writer.schema
            writer = writer or parquet.ParquetWriter(path, schema)
            writer.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema=schema))
        if writer is None:
            parquet.write_table(pa.table({name: pa.array([], pa.string()) for name in columns}), path)
    finally:
        if writer is not None:
            writer.close()


def _schema(row: Mapping[str, Any], pa: Any) -> Any:
    """Texts, whole numbers and numbers; a value that is missing in the first row is of a text."""
    kinds = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    return pa.schema([(name, kinds.get(type(value), pa.string())) for name, value in row.items()])
