"""pack.json: what a pack is and what it was made from. Nothing per sample, so that it stays small."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xxhash

from penstock.errors import PackError
from penstock.packing.layout import FORMAT_VERSION, INDEX_NAME, MANIFEST_NAME
from penstock.samples import Field, Schema
from penstock.storage.documents import load_json
from penstock.storage.plain_files import read_text
from penstock.storage.writing.skipped import skipped_count
from penstock.wording import counted

MOST_BYTES = 2**62


@dataclass(frozen=True)
class ShardEntry:
    """One shard file: how many rows and bytes it has, and the checksum of the whole file."""

    file: str
    rows: int
    bytes: int
    checksum: str


@dataclass(frozen=True)
class Manifest:
    """The content of pack.json."""

    schema: Schema
    samples: int
    codec: str
    splits: dict[str, int]
    groups: int
    shards: tuple[ShardEntry, ...]
    index: ShardEntry
    statistics: dict[str, Any]
    options: dict[str, Any]
    made_from: dict[str, Any]
    skipped: tuple[dict[str, Any], ...] = ()
    notes: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {
            "format": "penstock pack",
            "format_version": FORMAT_VERSION,
            "samples": self.samples,
            "schema": [_field_as_dict(field) for field in self.schema.fields],
            "classes": list(self.schema.classes),
            "codec": self.codec,
            "splits": self.splits,
            "groups": self.groups,
            "statistics": self.statistics,
            "options": self.options,
            "made_from": self.made_from,
            "notes": self.notes,
            "skipped_count": skipped_count(self.skipped),
            "skipped": list(self.skipped),
            "index": vars(self.index),
            "shards": [vars(shard) for shard in self.shards],
        }

    def write(self, folder: Path) -> None:
        values = self.as_dict()
        values["checksum"] = _checksum(values)
        (folder / MANIFEST_NAME).write_text(_as_text(values), encoding="utf-8")


def read_manifest(folder: Path) -> Manifest:
    """Read pack.json, or say why this is not a pack that can be read."""
    path = folder / MANIFEST_NAME
    values = _load(folder, path)
    version = values.get("format_version")
    if values.get("format") != "penstock pack" or not isinstance(version, int):
        raise PackError(f"{path} does not describe a pack.")
    if version > FORMAT_VERSION:
        raise PackError(
            f"{folder} has pack format {version}, and this version of Penstock reads up to {FORMAT_VERSION}. "
            "Run: pip install --upgrade penstock"
        )
    if values.get("checksum") != _checksum(values):
        raise PackError(f"{path} was changed or is damaged: its checksum does not match. Pack the data again.")
    try:
        found = _from_dict(values)
        _check_values(found)
        return found
    except (KeyError, TypeError, AttributeError) as error:
        raise PackError(f"{path} is damaged: {error!r} is missing or of another kind. Pack the data again.") from error
    except (ValueError, OverflowError) as error:
        raise PackError(f"{path} is damaged: {error}. Pack the data again.") from error


def _check_values(manifest: Manifest) -> None:
    """Raise ValueError for what no writer wrote; sizes must fit the columns of the index."""
    for entry in (manifest.index, *manifest.shards):
        if not isinstance(entry.file, str) or not is_plain_name(entry.file):
            raise ValueError(f"{entry.file!r} is not the name of a file in this folder")
        for number in (entry.rows, entry.bytes):
            if type(number) is not int or not 0 <= number < MOST_BYTES:
                raise ValueError(f"{entry.file} counts rows and bytes, and has {number!r}")
    if manifest.index.file != INDEX_NAME:
        raise ValueError(f"its index is {manifest.index.file!r}, and an index is called {INDEX_NAME}")
    rows = sum(shard.rows for shard in manifest.shards)
    if type(manifest.samples) is not int or manifest.samples != rows:
        raise ValueError(f"its samples are {manifest.samples!r}, and its shards have {counted(rows, 'row')}")
    if not all(isinstance(name, str) for name in (*manifest.splits, *manifest.schema.classes, manifest.codec)):
        raise ValueError("names of splits, classes and codec are texts")
    if not all(type(count) is int for count in manifest.splits.values()):
        raise ValueError("splits are counted in whole numbers")


def is_plain_name(name: str) -> bool:
    """Whether a name is that of a file in its folder, on any system: no path, nothing above."""
    return name not in ("", ".", "..") and not any(sign in name for sign in "/\\:\0")


def _as_text(values: dict[str, Any]) -> str:
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def _checksum(values: dict[str, Any]) -> str:
    """Of everything in the manifest but the checksum itself."""
    content = {name: value for name, value in values.items() if name != "checksum"}
    return xxhash.xxh3_64_hexdigest(_as_text(content).encode("utf-8", "surrogatepass"))


def _load(folder: Path, path: Path) -> dict[str, Any]:
    try:
        values = load_json(read_text(path))
    except FileNotFoundError:
        raise PackError(_not_there(folder)) from None
    except NotADirectoryError:
        raise PackError(f"{folder} is a file; a pack is a folder with {MANIFEST_NAME}.") from None
    except (ValueError, RecursionError) as error:
        raise PackError(f"{path} is damaged: {error}. Pack the data again.") from error
    if not isinstance(values, dict):
        raise PackError(f"{path} does not describe a pack.")
    return values


def _not_there(folder: Path) -> str:
    if not folder.exists():
        partial = folder.with_name(folder.name + ".partial")
        if partial.exists():
            return f"{folder} is not finished: pack it again with resume=True to resume where it stopped."
        return f"{folder} does not exist."
    return f"{folder} is not a pack: it has no {MANIFEST_NAME}. `penstock pack` makes one of raw files."


def _field_as_dict(field: Field) -> dict[str, Any]:
    return {"name": field.name, "kind": field.kind, "dtype": field.dtype, "shape": field.shape}


def _from_dict(values: dict[str, Any]) -> Manifest:
    fields = tuple(
        Field(item["name"], item["kind"], item["dtype"], None if item["shape"] is None else tuple(item["shape"]))
        for item in values["schema"]
    )
    return Manifest(
        schema=Schema(fields, tuple(values["classes"])),
        samples=values["samples"],
        codec=values["codec"],
        splits=values["splits"],
        groups=values["groups"],
        shards=tuple(ShardEntry(**item) for item in values["shards"]),
        index=ShardEntry(**values["index"]),
        statistics=values["statistics"],
        options=values["options"],
        made_from=values["made_from"],
        skipped=tuple(values["skipped"]),
        notes=values["notes"],
    )
