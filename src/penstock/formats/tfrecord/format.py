"""TFRecord files: how they are told, and how an export of ours is read again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.formats.format import Format
from penstock.samples import Field

if TYPE_CHECKING:
    from penstock.formats.exports.export_manifest import ExportFacts
    from penstock.samples import Store

CORNERS = tuple(f"image/object/bbox/{side}" for side in ("xmin", "ymin", "xmax", "ymax"))


def open_export(folder: Path, facts: ExportFacts, options: dict[str, Any]) -> Store:
    from penstock.formats.exports.exported import classes_of
    from penstock.formats.tfrecord.tfrecords import TFRecords

    known = {"image": "image/encoded", "class": "image/class/label", "boxes": CORNERS}

    def feature(field: Field) -> Any:
        if field.name == "box_label":
            return "image/object/class/label"
        if field.kind in known and (field.kind != "image" or field == facts.schema.image):
            return known[field.kind]
        return field

    fields = {field.name: feature(field) for field in facts.schema.fields}
    return TFRecords(folder, **{"fields": fields, **classes_of(facts), **options})


TFRECORD = Format(
    "tfrecord",
    "penstock.formats.tfrecord.tfrecords:TFRecords",
    infix=".tfrecord",  # train.tfrecord-00000-of-00010, x.tfrecord.gz
    endings=(".tfrecord", ".tfrecords", ".tfrec"),
    writer="penstock.formats.tfrecord.tfrecord_writer:TFRecord",
    open_export=open_export,
)
