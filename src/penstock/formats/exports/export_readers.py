"""How each format of an export is read again, so that nothing is guessed: classes in their order, types, splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from penstock.errors import RecipeError
from penstock.formats.columns.column_source import ColumnSource
from penstock.formats.exports.export_manifest import (
    FRAME_LIST_NAME,
    FRAMES_NAME,
    SAMPLES_NAME,
    ExportFacts,
    export_facts,
)
from penstock.formats.exports.exported import Exported, read_sample_table
from penstock.samples import Field, Store

CORNERS = tuple(f"image/object/bbox/{side}" for side in ("xmin", "ymin", "xmax", "ymax"))


def open_export(folder: Path | str, **options: Any) -> Store:
    """An export as its data were; `options` go to the source that reads its files, instead of what export.yaml says."""
    folder = Path(folder)
    facts = export_facts(folder)
    if facts is None or facts.to not in READERS:
        raise RecipeError(f"{folder} has no export.yaml that says how to read it.")
    source: Any = READERS[facts.to](folder, facts, options)
    described: Any = source.source if isinstance(source, Exported) else source
    # Where each keeps what `made_from` says.
    (described._told if isinstance(described, ColumnSource) else described._given).update(facts.handed_on)
    return source  # type: ignore[no-any-return]


def _records(folder: Path, facts: ExportFacts, options: dict[str, Any]) -> Store:
    from penstock.formats.tfrecord.tfrecords import TFRecords

    known = {"image": "image/encoded", "class": "image/class/label", "boxes": CORNERS}

    def feature(field: Field) -> Any:
        if field.name == "box_label":
            return "image/object/class/label"
        if field.kind in known and (field.kind != "image" or field == facts.schema.image):
            return known[field.kind]
        return field

    fields = {field.name: feature(field) for field in facts.schema.fields}
    return TFRecords(folder, **{"fields": fields, **_classes(facts), **options})


def _tars(folder: Path, facts: ExportFacts, options: dict[str, Any]) -> Store:
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
    return WebDataset(folder, **{"fields": fields, **_classes(facts), **options})


def _moved(field: Field, place: str) -> Field:
    """The field as found in another place."""
    return Field(place, field.kind, field.dtype, field.shape)


def _columns(facts: ExportFacts) -> dict[str, Any]:
    fields = {field.name: field for field in facts.schema.fields}
    return {"fields": fields, "label": fields.get("label", Field("", "text")).name, **_classes(facts)}


def _hdf5(folder: Path, facts: ExportFacts, options: dict[str, Any]) -> Store:
    from penstock.formats.hdf5.hdf5 import HDF5
    from penstock.formats.videos.videos import Videos

    if facts.layout == "deepethogram":
        files = [folder / video / f"{video}.h5" for video in facts.videos]
        labels = {video: folder / video / f"{video}_labels.csv" for video in facts.videos}
        return _of_videos(Videos(files, **{"size": None, **options}), facts, folder / FRAME_LIST_NAME, labels)
    return HDF5(folder, **{**_columns(facts), **options})


def _arrays(folder: Path, facts: ExportFacts, options: dict[str, Any]) -> Store:
    from penstock.formats.numpy.arrays import Arrays

    ending = ".npz" if facts.layout == "npz" else ""
    paths = [folder / f"{video}{ending}" for video in facts.videos]
    return Arrays(paths or (folder / "samples.npz" if ending else folder), **{**_columns(facts), **options})


def _directory(folder: Path, facts: ExportFacts, options: dict[str, Any]) -> Store:
    from penstock.formats.boxes.boxes import Boxes
    from penstock.formats.images.images import Images
    from penstock.formats.videos.videos import Videos

    has_boxes = any(field.kind == "boxes" for field in facts.schema.fields)
    if facts.videos and not has_boxes:
        videos = Videos([folder / video for video in facts.videos], **{"size": None, **options})
        labels = {video: folder / "labels" / f"{video}.csv" for video in facts.videos}
        return _of_videos(videos, facts, folder / FRAMES_NAME, labels)
    table = folder / (FRAMES_NAME if facts.videos else "labels.csv")
    if has_boxes:
        return _with_table(Boxes(folder / "boxes.csv", **{**_classes(facts), **options}), facts, table)
    return _with_table(Images(table, **{**_classes(facts), **options}), facts, table)


def _of_videos(source: Store, facts: ExportFacts, table: Path, labels: Mapping[str, Path]) -> Store:
    """Frames with their rows of the table, and with the rows of behaviours, vectors in the order of the classes."""
    rows = {f"{row['path'].partition('/')[0]}#{row['frame']}": row for row in read_sample_table(table)}
    behaviours = [field for field in facts.schema.fields if field.kind == "labels"][:1]
    for field in behaviours:
        for video, path in labels.items():
            for frame in read_sample_table(path):
                number = frame.pop("")
                rows[f"{video}#{number}"][field.name] = f"[{','.join(frame[name] for name in facts.schema.classes)}]"
    return Exported(source, facts.schema, rows, table)


def _boxes(annotations: Callable[[Path, ExportFacts], Any]) -> Callable[[Path, ExportFacts, dict[str, Any]], Store]:
    def read(folder: Path, facts: ExportFacts, options: dict[str, Any]) -> Store:
        from penstock.formats.boxes.boxes import Boxes

        source = Boxes(annotations(folder, facts), **{"images": _image_folder(folder), **_classes(facts), **options})
        return _with_table(source, facts, folder / SAMPLES_NAME, _image_key)

    return read


def _image_folder(folder: Path) -> Path:
    voc = folder / "JPEGImages"
    return voc if voc.is_dir() else folder


def _image_key(row: Mapping[str, str]) -> str:
    return row["path"].removeprefix("JPEGImages/")


def _with_table(
    source: Store,
    facts: ExportFacts,
    table: Path,
    key_of: Callable[[Mapping[str, str]], str] = lambda row: row["path"],
) -> Store:
    rows = {key_of(row): row for row in read_sample_table(table)}
    return Exported(source, facts.schema, rows, table)


def _classes(facts: ExportFacts) -> dict[str, Any]:
    return {"classes": list(facts.schema.classes)} if facts.schema.classes else {}


READERS: dict[str, Callable[[Path, ExportFacts, dict[str, Any]], Store]] = {
    "tfrecord": _records,
    "webdataset": _tars,
    "hdf5": _hdf5,
    "numpy": _arrays,
    "directory": _directory,
    "yolo": _boxes(lambda folder, facts: folder),
    "coco": _boxes(lambda folder, facts: sorted(folder.glob("*.json"))),
    "voc": _boxes(lambda folder, facts: folder / "Annotations"),
    "csv": _boxes(lambda folder, facts: folder / "boxes.csv"),
}
