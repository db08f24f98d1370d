"""Every checksum of a pack, and the index against its shards. What is damaged is said by file and row."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import SHOWN_PROBLEMS, PackError
from penstock.packing.columns import RowChecksums, batch_views
from penstock.packing.index import Columns, open_index, shard_index
from penstock.packing.layout import INDEX_NAME, MANIFEST_NAME, UNREADABLE_ARROW, column_types
from penstock.packing.manifest import Manifest, ShardEntry
from penstock.packing.mapping import MappedShard
from penstock.packing.row_checks import RowChecks
from penstock.packing.shards import file_checksum
from penstock.storage.writing.options import usable_cores

if TYPE_CHECKING:
    import pyarrow as pa

BOX_LABEL = "box_label"


@dataclass(frozen=True)
class Damage:
    """A damaged file, or one row of it."""

    file: str
    row: int | None
    what: str

    def __str__(self) -> str:
        return f"{self.file}{'' if self.row is None else f' row {self.row}'}: {self.what}"


class DamagedPack(PackError):  # noqa: N818 - it is a PackError by inheritance
    """A pack whose checksums do not match; `damages` lists all of them."""

    def __init__(self, pack: str, damages: tuple[Damage, ...]) -> None:
        self.pack, self.damages = pack, damages
        shown = [str(damage) for damage in damages[:SHOWN_PROBLEMS]]
        hidden = len(damages) - len(shown)
        more = [f"… and {hidden:,} more; penstock verify --json lists all."] if hidden else []
        super().__init__("\n".join([f"{pack} is damaged:", *shown, *more, "Copy it again, or pack the data again."]))

    def __reduce__(self) -> tuple[type[DamagedPack], tuple[str, tuple[Damage, ...]]]:
        return type(self), (self.pack, self.damages)


def verify_pack(folder: Path, manifest: Manifest) -> None:
    """Raise DamagedPack unless every file is there, every checksum matches and the index says what the shards say."""
    columns, found = _index_damages(folder, manifest)
    with ThreadPoolExecutor(usable_cores()) as pool:
        numbers = range(len(manifest.shards))
        in_shards = pool.map(lambda number: list(_Shard(folder, manifest, number, columns).damages()), numbers)
    damages = (*found, *(damage for damages in in_shards for damage in damages))
    if damages:
        raise DamagedPack(folder.as_posix(), damages)


def _index_damages(folder: Path, manifest: Manifest) -> tuple[Columns | None, list[Damage]]:
    """The columns of the index, as far as they can be read, and what is wrong in them alone."""
    found = list(_file_damages(folder, manifest.index))
    try:
        columns = open_index(folder, manifest.samples)
    except PackError as error:
        return None, found or [Damage(INDEX_NAME, None, f"its structure cannot be read ({error.__cause__ or error})")]
    misfits = RowChecks(folder, manifest, columns).misfits(0, manifest.samples)
    found += [Damage(INDEX_NAME, row, f"sample {row} has {what}") for row, what in misfits]
    if not found:
        counts = np.bincount(columns["split"], minlength=len(manifest.splits)).tolist()
        if counts != list(manifest.splits.values()):
            found.append(Damage(MANIFEST_NAME, None, f"its splits should count {counts}"))
    return columns, found


def _file_damages(folder: Path, entry: ShardEntry) -> Iterator[Damage]:
    """What can be said of a file as a whole."""
    path = folder / entry.file
    if not path.exists():
        yield Damage(entry.file, None, "the file is missing")
    elif (size := path.stat().st_size) != entry.bytes:
        yield Damage(entry.file, None, f"{size:,} bytes instead of {entry.bytes:,}")
    elif file_checksum(path) != entry.checksum:
        yield Damage(entry.file, None, "its checksum does not match")


class _Shard:
    """One shard, compared with its checksums and with the index."""

    def __init__(self, folder: Path, manifest: Manifest, number: int, columns: Columns | None) -> None:
        self.folder, self.manifest, self.number, self.columns = folder, manifest, number, columns
        self.entry = manifest.shards[number]
        self.path = folder / self.entry.file
        self.first = sum(shard.rows for shard in manifest.shards[:number])

    def damages(self) -> Iterator[Damage]:
        of_file = list(_file_damages(self.folder, self.entry))
        if self.path.exists() and self.path.stat().st_size != self.entry.bytes:
            of_file += self._cut_off(self.path.stat().st_size)
        if not self.path.exists() or self.path.stat().st_size != self.entry.bytes:
            yield from of_file
            return
        try:
            in_rows = [*self._damaged_rows(), *self._misplaced_rows()]
        except (*UNREADABLE_ARROW, PackError) as error:
            yield Damage(self.entry.file, None, f"its structure cannot be read ({error.__cause__ or error})")
            return
        yield from in_rows
        if of_file and not in_rows:
            yield Damage(self.entry.file, None, "its checksum does not match; the damage lies outside the rows")

    def _damaged_rows(self) -> Iterator[Damage]:
        """The rows whose own checksum does not match, and boxes of classes that there are not."""
        row = 0
        for batch in MappedShard(self.folder, self.entry, self._types()).valid_batches():
            views = batch_views(batch)
            checksum = RowChecksums(views)
            for inner in range(len(batch)):
                if checksum(inner) != int(views["checksum"].value(inner)):
                    key = bytes(views["key"].content(inner)).decode("utf-8", "replace")
                    yield Damage(self.entry.file, row + inner, f"checksum of {key!r} does not match")
            for inner in self._strange_boxes(batch):
                what = f"a box has a class that is none of the {len(self.manifest.schema.classes)}"
                yield Damage(self.entry.file, row + inner, what)
            row += len(batch)

    def _strange_boxes(self, batch: pa.RecordBatch) -> list[int]:
        """The rows with boxes of a class that there is not."""
        schema = self.manifest.schema
        if BOX_LABEL not in schema or schema[BOX_LABEL].kind != "labels" or not schema.classes:
            return []
        column = batch.column(BOX_LABEL)
        numbers = column.values.to_numpy()
        wrong = np.flatnonzero((numbers < -1) | (numbers >= len(schema.classes)))
        return sorted(set((np.searchsorted(column.offsets.to_numpy(), wrong, side="right") - 1).tolist()))

    def _misplaced_rows(self) -> Iterator[Damage]:
        """The rows of the index that say something else than this shard."""
        if self.columns is None:
            return
        start, splits = self.first, list(self.manifest.splits)
        for part in shard_index(self.path, self.number, self.manifest.schema, splits):
            stop, told = start + len(part["shard"]), set()
            for name, expected in part.items():
                for row in np.flatnonzero(self.columns[name][start:stop] != expected).tolist():
                    if row not in told:
                        told.add(row)
                        value = self.columns[name][start + row]
                        what = f"sample {start + row} has {name} {value}, and {self.entry.file} says {expected[row]}"
                        yield Damage(INDEX_NAME, start + row, what)
            start = stop

    def _types(self) -> dict[str, Any]:
        if self.manifest.codec != "raw":
            return column_types(self.manifest.schema, None)
        if self.columns is None:
            return {}
        return column_types(self.manifest.schema, (int(self.columns["width"][0]), int(self.columns["height"][0])))

    def _cut_off(self, size: int) -> Iterator[Damage]:
        """The rows whose bytes lie beyond the end of a file that was cut short."""
        if self.columns is None:
            return
        part = {name: self.columns[name][self.first : self.first + self.entry.rows] for name in ("offset", "length")}
        lost = np.flatnonzero(part["offset"] + part["length"] > size)
        if len(lost):
            what = f"this row and those after it, up to {lost[-1]}, are cut off"
            yield Damage(self.entry.file, int(lost[0]), what)
