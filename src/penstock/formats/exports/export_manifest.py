"""export.yaml: what an export says of itself, for whoever reads it again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError
from penstock.samples import Field, Schema
from penstock.storage.documents import load_json
from penstock.storage.plain_files import read_file

# YAML, and JSON too; readers of many formats take a .json for annotations.
MANIFEST_NAME = "export.yaml"
MARK = "penstock export"
# Where formats without a place for it keep the key, group and split of every sample.
SAMPLES_NAME = "samples.csv"
# The same for frames of videos.
FRAMES_NAME = "frames.csv"
# And beside DeepEthogram's files, in a folder in which every .csv is taken for labels.
FRAME_LIST_NAME = "frames.list"


@dataclass(frozen=True)
class ExportFacts:
    """What reading needs of export.yaml: the format and its layout, and the schema without what was left out."""

    to: str
    layout: str
    schema: Schema
    videos: tuple[str, ...]
    handed_on: dict[str, Any]


def fields_as_dicts(schema: Schema) -> list[dict[str, Any]]:
    """The fields as export.yaml lists them."""
    return [
        {"name": one.name, "kind": one.kind, "dtype": one.dtype, "shape": one.shape and list(one.shape)}
        for one in schema.fields
    ]


def export_facts(folder: Path) -> ExportFacts | None:
    """What export.yaml says; None where there is none of ours, or one of a version that did not list the fields."""
    try:
        values = load_json(read_file(folder / MANIFEST_NAME))
        if values["format"] != MARK or "fields" not in values:
            return None
        left_out = set(values["left_out"])
        fields = [
            Field(one["name"], one["kind"], one["dtype"], None if one["shape"] is None else tuple(one["shape"]))
            for one in values["fields"]
            if one["name"] not in left_out
        ]
        videos = tuple(str(video["name"]) for video in values["videos"])
        classes = tuple(map(str, values["classes"]))
        handed_on = dict(values.get("handed_on", {}))
        return ExportFacts(values["to"], values["options"]["layout"], Schema(tuple(fields), classes), videos, handed_on)
    except (OSError, ValueError, KeyError, TypeError, PenstockError):
        return None  # somebody else's file of that name, or an edited one: the folder is read like any other
