"""Packs that somebody changed on purpose: every checksum that a file has of itself is repaired afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from penstock.packing.manifest import _checksum
from penstock.packing.shards import file_checksum

Change = Callable[[NDArray[Any]], Any]


def change_manifest(pack: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = pack / "pack.json"
    values = json.loads(path.read_text("utf-8"))
    change(values)
    values["checksum"] = _checksum(values)
    path.write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n", "utf-8")


def repair_manifest(pack: Path) -> None:
    """Make the checksum of pack.json again, whatever stands in it."""
    change_manifest(pack, lambda values: None)


def repair(pack: Path) -> None:
    """Write into pack.json what its files are now."""

    def note(values: dict[str, Any]) -> None:
        for entry in (values["index"], *values["shards"]):
            file = pack / entry["file"]
            entry["bytes"], entry["checksum"] = file.stat().st_size, file_checksum(file)

    change_manifest(pack, note)


def read_batches(path: Path) -> list[pa.RecordBatch]:
    with pa.OSFile(str(path)) as file:
        reader = pa.ipc.open_file(pa.py_buffer(file.read()))
        return [reader.get_batch(number) for number in range(reader.num_record_batches)]


def write_batches(path: Path, batches: list[pa.RecordBatch]) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def change_column(path: Path, name: str, change: Callable[[pa.Array], pa.Array]) -> None:
    """Put another column into every record batch of a file."""
    changed = []
    for batch in read_batches(path):
        columns = {one: batch.column(one) for one in batch.schema.names}
        columns[name] = change(columns[name])
        changed.append(pa.record_batch(list(columns.values()), names=list(columns)))
    write_batches(path, changed)


def change_index(pack: Path, name: str, row: int, value: int) -> None:
    """Another number in one row of the index."""

    def put(column: pa.Array) -> pa.Array:
        values = column.to_numpy(zero_copy_only=False).copy()
        values[row] = value
        return pa.array(values, column.type)

    change_column(pack / "index.arrow", name, put)
    repair(pack)
