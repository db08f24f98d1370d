"""Tar shards of WebDataset: how they are told, and how an export of ours is read again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.formats.format import Format
from penstock.samples import Field

if TYPE_CHECKING:
    from penstock.formats.exports.export_manifest import ExportFacts
    from penstock.samples import Store


def open_export(folder: Path, facts: ExportFacts, options: dict[str, Any]) -> Store:
    from penstock.formats.exports.exported import classes_of
    from penstock.formats.webdataset.tar_fields import IMAGES
    from penstock.formats.webdataset.webdataset import WebDataset

    def place(field: Field) -> Any:
        if field == facts.schema.image:
            return ";".join(IMAGES)
        inside = {"class": "cls", "mask": f"{field.name}.png", "image": f"{field.name}.png"}
        inside["array"] = f"{field.name}.npy"
        where = inside.get(field.kind, f"json:{field.name}")
        return where if field.kind == "class" else _moved(field, where)

    fields = {field.name: place(field) for field in facts.schema.fields}
    return WebDataset(folder, **{"fields": fields, **classes_of(facts), **options})


def _moved(field: Field, place: str) -> Field:
    """The field as found in another place."""
    return Field(place, field.kind, field.dtype, field.shape)


WEBDATASET = Format(
    "webdataset",
    "penstock.formats.webdataset.webdataset:WebDataset",
    endings=(".tar", ".tar.gz", ".tgz"),
    writer="penstock.formats.webdataset.webdataset_writer:WebDataset",
    open_export=open_export,
)
