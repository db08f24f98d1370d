"""Every checksum of a pack. What is damaged is said by file and row."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penstock.errors import SHOWN_PROBLEMS, PackError
from penstock.packing.columns import RowChecksums, batch_views
from penstock.packing.index import open_index
from penstock.packing.layout import UNREADABLE_ARROW
from penstock.packing.manifest import Manifest, ShardEntry
from penstock.packing.mapping import MappedShard
from penstock.packing.options import usable_cores
from penstock.packing.shards import file_checksum


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
    """Raise DamagedPack unless every file is there and every checksum matches."""
    with ThreadPoolExecutor(usable_cores()) as pool:
        found = pool.map(lambda entry: list(_file_damages(folder, manifest, entry)), [manifest.index, *manifest.shards])
    damages = tuple(damage for damages in found for damage in damages)
    if damages:
        raise DamagedPack(folder.as_posix(), damages)


def _file_damages(folder: Path, manifest: Manifest, entry: ShardEntry) -> Iterator[Damage]:
    path = folder / entry.file
    if not path.exists():
        yield Damage(entry.file, None, "the file is missing")
        return
    size = path.stat().st_size
    if size != entry.bytes:
        yield Damage(entry.file, None, f"{size:,} bytes instead of {entry.bytes:,}")
        if entry != manifest.index and size < entry.bytes:
            yield from _cut_off(folder, manifest, entry, size)
        return
    if file_checksum(path) == entry.checksum:
        return
    if entry == manifest.index:
        yield Damage(entry.file, None, "its checksum does not match")
        return
    yield from _damaged_rows(folder, entry)


def _damaged_rows(folder: Path, entry: ShardEntry) -> Iterator[Damage]:
    """The rows whose own checksum does not match; when none, the damage lies between them."""
    row, found = 0, False
    try:
        for batch in MappedShard(folder, entry).batches():
            views = batch_views(batch)
            checksum = RowChecksums(views)
            for inner in range(len(batch)):
                if checksum(inner) != int(views["checksum"].value(inner)):
                    found = True
                    key = bytes(views["key"].content(inner)).decode("utf-8", "replace")
                    yield Damage(entry.file, row + inner, f"checksum of {key!r} does not match")
            row += len(batch)
    except (*UNREADABLE_ARROW, PackError, KeyError) as error:
        yield Damage(entry.file, None, f"its structure cannot be read ({error.__cause__ or error})")
        return
    if not found:
        yield Damage(entry.file, None, "its checksum does not match; the damage lies outside the rows")


def _cut_off(folder: Path, manifest: Manifest, entry: ShardEntry, size: int) -> Iterator[Damage]:
    """The rows whose bytes lie beyond the end of a file that was cut short."""
    try:
        columns = open_index(folder, manifest.samples)
    except PackError:
        return
    number = manifest.shards.index(entry)
    inside = columns["shard"] == number
    lost = np.flatnonzero(columns["offset"][inside] + columns["length"][inside] > size)
    if len(lost):
        first, last = columns["row"][inside][lost[0]], columns["row"][inside][lost[-1]]
        yield Damage(entry.file, int(first), f"this row and those after it, up to {last}, are cut off")
