"""Which format annotations have, and the reader for it: by ending and content, never by a flag."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.errors import DataError, Problem
from penstock.formats.boxes.box_tables import box_table_rows, pixel_shape_rows, read_box_table
from penstock.formats.boxes.coco import coco_rows, read_json
from penstock.formats.boxes.layers import (
    LAYER_ENDINGS,
    features_of_frame,
    is_geojson,
    is_geoparquet,
    layer_rows,
    read_layer,
)
from penstock.formats.boxes.rows import Rows, join_rows
from penstock.formats.boxes.voc import is_voc_root, is_xml, voc_root_rows, voc_rows
from penstock.formats.boxes.yolo import is_yolo_file, label_files, loose_label_files, yolo_rows
from penstock.formats.exports.export_manifest import SAMPLES_NAME
from penstock.formats.paths import expand, files_below
from penstock.formats.reading import ReadingOptions
from penstock.formats.split_files import splits_of
from penstock.formats.tables import TABLE_ENDINGS, table_of_frame

_ENDINGS = {".xml": "Pascal VOC", ".json": "JSON", ".txt": "YOLO"}
_EXPECTED = "Expected CSV, Parquet, Pascal VOC (.xml), COCO (.json), YOLO (.txt), GeoJSON, GeoPackage or shapefile"


def read_rows(annotations: Any, options: ReadingOptions) -> Rows:
    """Rows of annotations in any accepted form; rows that were read before stay as they are."""
    if isinstance(annotations, Rows):
        return annotations
    if hasattr(annotations, "columns"):
        return _frame_rows(annotations, options)
    if not isinstance(annotations, str | os.PathLike | Sequence):
        kind = type(annotations).__name__
        raise DataError([Problem(kind, None, "these are no annotations", "Pass a path, a list of paths or a table")])
    pieces: list[Rows] = []
    files: list[Path] = []
    for path in expand(annotations):
        if path.is_dir():
            pieces.append(_folder_rows(path, options))
        else:
            files.append(path)
    if files:
        pieces.append(_file_rows(files, options))
    if not pieces:
        raise DataError([Problem("annotations", None, "the list is empty", _EXPECTED)])
    return join_rows(pieces)


def refuse_empty_file(annotations: Any) -> None:
    """Annotations in one file that has nothing in it are a mistake; beside others it is an image without boxes."""
    if not isinstance(annotations, str | os.PathLike):
        return
    path = Path(annotations)
    if path.suffix.lower() in (".csv", ".tsv") and path.is_file() and not path.stat().st_size:
        remedy = "Write a header and one row per box; beside others, an empty table means an image without boxes"
        raise DataError([Problem(str(path), None, "the file is empty", remedy)])


def _frame_rows(frame: Any, options: ReadingOptions) -> Rows:
    """A DataFrame; a GeoDataFrame with a CRS is a layer, one without is in pixels."""
    if hasattr(frame, "to_pandas"):  # polars, pyarrow
        frame = frame.to_pandas()
    if _is_geo_frame(frame):
        features = features_of_frame(frame)
        if features.crs is not None:
            return layer_rows(features, options)
        return pixel_shape_rows(features.table, features.shapes, options)
    return box_table_rows(table_of_frame(frame), options)


def _is_geo_frame(frame: Any) -> bool:
    """Whether a table is a GeoDataFrame; when geopandas was never imported, it cannot be."""
    geopandas = sys.modules.get("geopandas")
    return geopandas is not None and isinstance(frame, geopandas.GeoDataFrame) and bool(frame.active_geometry_name)


def _folder_rows(folder: Path, options: ReadingOptions) -> Rows:
    """A folder of one format; several formats in one folder must be told apart by a pattern."""
    if _is_yolo_root(folder):
        return yolo_rows(_yolo_labels(folder), options, root=folder)
    if is_voc_root(folder):
        return voc_root_rows(folder)
    found: dict[str, list[Path]] = {}
    for file in files_below(folder, {*_ENDINGS, *TABLE_ENDINGS, *LAYER_ENDINGS}):
        if file.name == SAMPLES_NAME:
            continue
        found.setdefault(_ENDINGS.get(file.suffix.lower(), file.suffix.lower()), []).append(file)
    if "YOLO" in found:
        found["YOLO"] = loose_label_files(found["YOLO"], options)
    found = {kind: files for kind, files in found.items() if files}
    if not found:
        raise DataError([Problem(str(folder), None, "the folder holds no annotations", _EXPECTED)])
    if len(found) > 1:
        kinds = ", ".join(f"{len(files):,} {kind}" for kind, files in found.items())
        remedy = f"Say which, with a pattern such as '{folder}/*{next(iter(found.values()))[0].suffix}'"
        raise DataError([Problem(str(folder), None, f"the folder holds annotations of several kinds: {kinds}", remedy)])
    ((kind, files),) = found.items()
    return yolo_rows(files, options) if kind == "YOLO" else _file_rows(files, options)


def _is_yolo_root(folder: Path) -> bool:
    """Whether a folder has a `labels` folder of texts, its own or one in each split."""
    if folder.name == "labels":
        return False
    return bool(_yolo_labels(folder))


def _yolo_labels(folder: Path) -> list[Path]:
    """Label files of the layouts that YOLO knows; see yolo.py."""
    label_folders = [folder / "labels", *sorted(folder.glob("*/labels"))]
    return [file for place in label_folders if place.is_dir() for file in label_files(place)]


def _file_rows(files: Sequence[Path], options: ReadingOptions) -> Rows:
    by_reader: dict[str, list[Path]] = {}
    for file in files:
        by_reader.setdefault(_reader(file), []).append(file)
    pieces: list[Rows] = []
    if "voc" in by_reader:
        pieces.append(voc_rows(by_reader["voc"]))
    if "yolo" in by_reader:
        pieces.append(yolo_rows(by_reader["yolo"], options))
    pieces += [read_box_table(file, options) for file in by_reader.get("table", [])]
    pieces += [layer_rows(read_layer(file), options) for file in by_reader.get("layer", [])]
    pieces += _all_json_rows(by_reader.get("json", []), options)
    return join_rows(pieces)


def _all_json_rows(files: Sequence[Path], options: ReadingOptions) -> list[Rows]:
    """Rows of each file; where the names of several files tell their splits, those of their images."""
    splits = splits_of(map(str, files))
    pieces = [_json_rows(file, options) for file in files]
    if len(set(splits)) < 2:
        return pieces
    return [
        piece if piece.splits else replace(piece, splits=dict.fromkeys(range(len(piece.images)), split or ""))
        for piece, split in zip(pieces, splits, strict=True)
    ]


def _reader(file: Path) -> str:
    """Which reader takes a file."""
    ending = file.suffix.lower()
    if ending == ".xml" or (ending == ".txt" and is_xml(file)):
        return "voc"
    if ending == ".json":
        return "json"
    if ending == ".txt" and is_yolo_file(file):
        return "yolo"
    if ending in LAYER_ENDINGS or (ending in (".parquet", ".pq") and is_geoparquet(file)):
        return "layer"
    if ending in TABLE_ENDINGS:
        return "table"
    raise DataError([Problem(str(file), None, f"annotations in {ending or 'a file without ending'!r}", _EXPECTED)])


def _json_rows(file: Path, options: ReadingOptions) -> Rows:
    document = read_json(file)
    if is_geojson(document):
        return layer_rows(read_layer(file), options)
    return coco_rows(file, document)
