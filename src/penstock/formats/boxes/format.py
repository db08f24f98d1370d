"""Formats of boxes: each is told by its files; `Boxes` reads them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.formats.exports.export_manifest import SAMPLES_NAME
from penstock.formats.format import Format, Found, Look
from penstock.storage.documents import load_json
from penstock.storage.plain_files import read_text

if TYPE_CHECKING:
    from penstock.formats.exports.export_manifest import ExportFacts
    from penstock.samples import Store

    Open = Callable[[Path, ExportFacts, dict[str, Any]], Store]

READER = "penstock.formats.boxes.boxes:Boxes"
# Files of annotations, which may lie together and beside images.
ANNOTATIONS = {"voc", "coco", "layers"}
IMAGES = "directory"


def has_labels(folder: Path) -> bool:
    """As YOLO has them: labels beside images, or so in each split."""
    return (folder / "labels").is_dir() or any(folder.glob("*/labels"))


def is_voc(folder: Path) -> bool:
    from penstock.formats.boxes.voc import is_voc_root

    return is_voc_root(folder)


def recognise_annotations(look: Look) -> Found | None:
    if look.is_folder:
        is_ours = bool(look.kinds & ANNOTATIONS) and look.kinds <= {*ANNOTATIONS, IMAGES}
        return Found("Boxes", look.seen) if is_ours else None
    if look.kind not in ANNOTATIONS:
        return None
    if look.path.suffix.lower() == ".json" and not _holds_names(look.path):
        return Found("", "JSON that is neither COCO nor GeoJSON")
    return Found("Boxes")


def _holds_names(path: Path) -> bool:
    try:
        return isinstance(load_json(read_text(path)), dict)
    except (OSError, ValueError):
        return False


def recognise_table(look: Look) -> Found | None:
    """A table by itself; one beside images is told by `formats/images/format.py`."""
    from penstock.formats.tables import kind_of_table

    if look.is_folder or look.kind != "csv":
        return None
    if look.begin.lstrip(b"\xef\xbb\xbf \r\n").startswith((b"<?xml", b"<annotation")):
        return Found("Boxes")
    return Found(kind_of_table(look.path), "a table without columns of boxes or of paths of images")


def open_export_of(annotations: Callable[[Path], Any]) -> Open:
    def open_export(folder: Path, facts: ExportFacts, options: dict[str, Any]) -> Store:
        from penstock.formats.boxes.boxes import Boxes
        from penstock.formats.exports.exported import classes_of, with_table

        source = Boxes(annotations(folder), **{"images": _image_folder(folder), **classes_of(facts), **options})
        return with_table(source, facts, folder / SAMPLES_NAME, _image_key)

    return open_export


def _image_folder(folder: Path) -> Path:
    voc = folder / "JPEGImages"
    return voc if voc.is_dir() else folder


def _image_key(row: Mapping[str, str]) -> str:
    return row["path"].removeprefix("JPEGImages/")


YOLO = Format(
    "yolo",
    READER,
    marks=has_labels,
    writer="penstock.formats.boxes.yolo_writer:Yolo",
    open_export=open_export_of(lambda folder: folder),
)
COCO = Format(
    "coco",
    READER,
    endings=(".json",),
    recognise=recognise_annotations,
    writer="penstock.formats.boxes.coco_writer:Coco",
    open_export=open_export_of(lambda folder: sorted(folder.glob("*.json"))),
)
VOC = Format(
    "voc",
    READER,
    endings=(".xml",),
    marks=is_voc,
    recognise=recognise_annotations,
    writer="penstock.formats.boxes.voc_writer:Voc",
    open_export=open_export_of(lambda folder: folder / "Annotations"),
)
CSV = Format(
    "csv",
    READER,
    endings=(".csv", ".tsv", ".txt"),
    recognise=recognise_table,
    writer="penstock.formats.boxes.csv_writer:Csv",
    open_export=open_export_of(lambda folder: folder / "boxes.csv"),
)
LAYERS = Format("layers", READER, endings=(".geojson", ".gpkg", ".shp", ".fgb"), recognise=recognise_annotations)
