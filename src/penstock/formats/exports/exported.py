"""A view of image files and their annotations that adds what stands in a table of the export."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.images import decode_image, decode_mask
from penstock.errors import DataError, Problem
from penstock.formats.exports.export_manifest import ExportFacts
from penstock.formats.paths import read_bytes
from penstock.samples import Field, Raw, Sample, Schema, Store, View
from penstock.storage.documents import load_json
from penstock.wording import counted

PLACES = ("key", "group", "split")


class Exported(View):
    """Samples of `source` with the fields of `schema`; those that the source lacks come from the rows of a table.

    `rows` has for the key of each sample in the source its row: key, group, split, and fields as texts.
    """

    def __init__(self, source: Store, schema: Schema, rows: Mapping[str, Mapping[str, str]], table: Path) -> None:
        self.source, self._schema, self._table = source, schema, table
        keys = [str(key) for key in source.column("key")]
        self._rows = [rows[key] for key in _all_listed(keys, rows, table)]
        own = {field.name for field in source.schema.fields} - _numbers_in(schema, self._rows)
        self._own = [field.name for field in schema.fields if field.name in own]
        self._added = [field for field in schema.fields if field.name not in own]
        self._places = [name for name in PLACES if self._rows and name in self._rows[0]]

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def damage_is_known(self) -> bool:
        return self.source.damage_is_known

    def label_counts(self) -> NDArray[np.int64] | None:
        return self.source.label_counts()

    def counts(self) -> Mapping[str, int]:
        return self.source.counts()

    def made_from(self) -> Mapping[str, Any]:
        return self.source.made_from()

    def __repr__(self) -> str:
        return f"{self.source!r} of {self._table.parent}"

    def decode(self, raw: Raw) -> Sample:
        sample = self._completed(self.source.decode(raw), raw.index)
        for field in self._added:
            if field.kind in ("image", "mask"):
                data = read_bytes(self._table.parent / self._rows[raw.index][field.name])
                sample[field.name] = decode_image(data) if field.kind == "image" else decode_mask(data)
        return sample

    def annotations(self, index: int) -> Sample:
        """Every field but the pixels."""
        return self._completed(self.source.annotations(index), index)

    def _completed(self, inner: Sample, index: int) -> Sample:
        row = self._rows[index]
        sample = {name: inner[name] for name in (*PLACES, *self._own) if name in inner}
        sample.update({name: row[name] for name in self._places})
        for field in self._added:
            if field.kind not in ("image", "mask"):
                sample[field.name] = self._value(field, row[field.name])
        return sample

    def _value(self, field: Field, text: str) -> Any:
        if field.kind == "class":
            return self.classes.index(text) if text else -1
        if field.kind == "text":
            return text
        if field.kind == "number":
            return np.dtype(field.dtype).type(text)
        return np.asarray(load_json(text), np.dtype(field.dtype))

    def column(self, name: str) -> NDArray[Any]:
        """key, group, split, or a field of every sample."""
        if name in self._places:
            return np.array([row[name] for row in self._rows], object)
        field = next((one for one in self._added if one.name == name), None)
        if field is None or field.kind in ("image", "mask"):
            return self.source.column(name)
        return np.array([self._value(field, row[name]) for row in self._rows])


def _numbers_in(schema: Schema, rows: Sequence[Mapping[str, str]]) -> set[str]:
    """Numbers that stand in the table: those are exact, while image files of a video have no clock."""
    return {field.name for field in schema.fields if field.kind == "number" and rows and field.name in rows[0]}


def _all_listed(keys: Sequence[str], rows: Mapping[str, Any], table: Path) -> Sequence[str]:
    missing = [key for key in keys if key not in rows]
    if missing:
        what = f"{len(missing):,} of {counted(len(keys), 'image', 'is')} not listed, the first is {missing[0]}"
        remedy = "Files were added or renamed: list them here, or open the annotations themselves, not the folder"
        raise DataError([Problem(str(table), None, what, remedy)])
    return keys


def read_sample_table(path: Path) -> list[dict[str, str]]:
    """The rows of a table that an export wrote."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, strict=True))
    except (OSError, ValueError, csv.Error) as error:
        raise DataError([Problem(str(path), None, f"cannot be read: {error}", "Export the data again")]) from error


def with_table(
    source: Store,
    facts: ExportFacts,
    table: Path,
    key_of: Callable[[Mapping[str, str]], str] = lambda row: row["path"],
) -> Store:
    """Image files with their rows of a table."""
    rows = {key_of(row): row for row in read_sample_table(table)}
    return Exported(source, facts.schema, rows, table)


def of_videos(source: Store, facts: ExportFacts, table: Path, labels: Mapping[str, Path]) -> Store:
    """Frames with their rows of the table, and with the rows of behaviours, vectors in the order of the classes."""
    rows = {f"{row['path'].partition('/')[0]}#{row['frame']}": row for row in read_sample_table(table)}
    behaviours = [field for field in facts.schema.fields if field.kind == "labels"][:1]
    for field in behaviours:
        for video, path in labels.items():
            for frame in read_sample_table(path):
                number = frame.pop("")
                rows[f"{video}#{number}"][field.name] = f"[{','.join(frame[name] for name in facts.schema.classes)}]"
    return Exported(source, facts.schema, rows, table)


def columns_of(facts: ExportFacts) -> dict[str, Any]:
    """The options of columns that say what every field is."""
    fields = {field.name: field for field in facts.schema.fields}
    return {"fields": fields, "label": fields.get("label", Field("", "text")).name, **classes_of(facts)}


def classes_of(facts: ExportFacts) -> dict[str, Any]:
    """The classes in their order, as an option."""
    return {"classes": list(facts.schema.classes)} if facts.schema.classes else {}
