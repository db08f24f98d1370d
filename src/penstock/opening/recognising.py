"""What a path holds: by the files that a format always has, by the first bytes of a file, then by endings."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from penstock.codecs.tiff import is_georeferenced
from penstock.formats.boxes.voc import is_voc_root
from penstock.formats.exports.export_manifest import SAMPLES_NAME, export_facts
from penstock.formats.paths import IMAGE_ENDINGS, VIDEO_ENDINGS
from penstock.storage.documents import load_json

# DeepEthogram's settings; the file stands for its project.
PROJECT = "project_config.yaml"
# What reads an export of ours; it has no class of its own.
EXPORT = "an export"

TIFF_ENDINGS = (".tif", ".tiff")
# Rasters that only GDAL opens; a VRT beside the files that it names says nothing about their folder.
MAP_ENDINGS = (".jp2", ".vrt", ".img")
# Endings of files → the constructor for them. What stands first wins where a name has several.
ENDINGS: dict[str, str] = {
    **dict.fromkeys((".tfrecord", ".tfrecords", ".tfrec"), "TFRecords"),
    **dict.fromkeys((".tar", ".tar.gz", ".tgz"), "WebDataset"),
    **dict.fromkeys((".h5", ".hdf5", ".he5", ".hdf"), "HDF5"),
    **dict.fromkeys((".npy", ".npz"), "Arrays"),
    **dict.fromkeys((".parquet", ".pq", ".geoparquet"), "Parquet"),
    ".arrow": "HuggingFace",
    **dict.fromkeys((".xml", ".json", ".geojson", ".gpkg", ".shp", ".fgb"), "Boxes"),
    **dict.fromkeys((".csv", ".tsv", ".txt"), "table"),
    **dict.fromkeys(VIDEO_ENDINGS, "Videos"),
    **dict.fromkeys(IMAGE_ENDINGS, "Images"),
}
MAGIC = {
    b"\x89HDF\r\n\x1a\n": "HDF5",
    b"\x93NUMPY": "Arrays",
    b"PAR1": "Parquet",
    b"ARROW1": "HuggingFace",
}
# A folder is looked at so far: enough to tell its kind, also where it holds millions of files.
LOOKED_AT = 2000


class Found(NamedTuple):
    """Which constructor reads a path; empty where none was recognised, `seen` then says what is there."""

    kind: str
    seen: str = ""


def recognised(path: Path) -> Found:
    """The constructor for a path."""
    return _folder(path) if path.is_dir() else _file(path)


def _folder(path: Path) -> Found:
    marked = _marked(path)
    if marked:
        return Found(marked)
    kinds = _kinds_below(path)
    seen = ", ".join(f"{count:,} {ending or 'without ending'}" for ending, count in _endings_below(path).most_common(6))
    if kinds in ({"Images"}, {"Images", "table"}):
        return Found(_of_images(path), seen)
    if kinds in ({"Boxes"}, {"Images", "Boxes"}):
        return Found("Boxes", seen)
    if kinds == {"Videos"}:
        return Found("Videos", seen)
    if len(kinds) == 1 and kinds <= {"TFRecords", "WebDataset", "HDF5", "Arrays", "Parquet", "HuggingFace"}:
        return Found(kinds.pop(), seen)
    return Found("", seen or "nothing")


def _marked(path: Path) -> str:
    """Formats whose folders say what they are."""
    if export_facts(path) is not None:
        return EXPORT
    if (path / "dataset_dict.json").is_file() or (path / "state.json").is_file():
        return "HuggingFace"
    if (path / PROJECT).is_file():
        return "DeepEthogram"
    below = [folder for folder in path.iterdir() if folder.is_dir() and not folder.name.startswith(".")]
    if _is_mds(path / "index.json") or (below and all(_is_mds(folder / "index.json") for folder in below)):
        return "MDS"
    if is_voc_root(path) or (path / "labels").is_dir() or any(path.glob("*/labels")):
        return "Boxes"
    return ""


def _is_mds(index: Path) -> bool:
    values = _json(index)
    shards = values.get("shards") if isinstance(values, dict) else None
    return isinstance(shards, list) and all(isinstance(one, dict) and one.get("format") == "mds" for one in shards[:1])


def _json(path: Path) -> Any:
    try:
        return load_json(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None


def _some_files(path: Path) -> list[Path]:
    """The first visible files below a folder."""
    found: list[Path] = []
    for file in path.rglob("*"):
        if not any(piece.startswith(".") for piece in file.relative_to(path).parts) and file.is_file():
            found.append(file)
            if len(found) == LOOKED_AT:
                break
    return found


def _kinds_below(path: Path) -> set[str]:
    """The kinds of the files; files of no kind (README, checksums) say nothing."""
    return {_kind_by_name(file) for file in _some_files(path)} - {""}


def _endings_below(path: Path) -> Counter[str]:
    return Counter(file.suffix.lower() for file in _some_files(path))


def _kind_by_name(file: Path) -> str:
    name = file.name.lower()
    if ".tfrecord" in name:  # train.tfrecord-00000-of-00010, x.tfrecord.gz
        return "TFRecords"
    if name in ("readme.txt", "license.txt", "dataset_info.json", "requirements.txt", "classes.txt", SAMPLES_NAME):
        return ""
    return next((kind for ending, kind in ENDINGS.items() if name.endswith(ending)), "")


def _are_rasters(path: Path) -> bool:
    """Whether the images are maps: TIFF files that say where on earth they lie."""
    images = [file for file in _some_files(path) if _kind_by_name(file) == "Images"]
    tiffs = [file for file in images if file.suffix.lower() in TIFF_ENDINGS]
    return bool(tiffs) and len(tiffs) == len(images) and all(is_georeferenced(file) for file in tiffs[:8])


def _of_images(path: Path) -> str:
    """Maps, images beside a table of boxes, or images whose folders are classes.

    Maps beside tables are not guessed: whether the tables belong to them must be said (`Rasters(…, boxes=…)`).
    """
    tables = [file for file in _some_files(path) if _kind_by_name(file) == "table"]
    if any(_table_kind(table) == "Boxes" for table in tables):
        return "Boxes"
    if not _are_rasters(path):
        return "Images"
    return "" if any(table.suffix.lower() != ".txt" for table in tables) else "Rasters"


def _file(path: Path) -> Found:
    if path.name == PROJECT:
        return Found("DeepEthogram")
    kind = _kind_by_name(path)
    with path.open("rb") as file:
        begin = file.read(16)
    kind = next((found for magic, found in MAGIC.items() if begin.startswith(magic)), kind)
    if kind == "Parquet":
        return Found(_parquet_kind(path))
    if kind == "table" and begin.lstrip(b"\xef\xbb\xbf \r\n").startswith((b"<?xml", b"<annotation")):
        return Found("Boxes")
    if kind == "table":
        return Found(_table_kind(path), "a table without columns of boxes or of paths of images")
    if kind == "Images":
        return Found("Rasters" if path.suffix.lower() in TIFF_ENDINGS else "", "one image")
    if not kind and path.suffix.lower() in MAP_ENDINGS:
        return Found("Rasters")
    if kind == "Boxes" and path.suffix.lower() == ".json":
        return Found("Boxes" if isinstance(_json(path), dict) else "", "JSON that is neither COCO nor GeoJSON")
    return Found(kind, f"a file that begins with {begin[:8]!r}")


def _parquet_kind(path: Path) -> str:
    """Parquet with images inside, a table of boxes, or a table of paths."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError, ValueError):  # ValueError: names that are not UTF-8
        return "Parquet"  # whose error says what is wrong with it
    if b"geo" in (schema.metadata or {}):
        return "Boxes"
    binary = [field for field in schema if pa.types.is_struct(field.type) or _is_binary(field.type)]
    return "Parquet" if binary else _kind_of_columns(schema.names) or "Parquet"


def _is_binary(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _table_kind(path: Path) -> str:
    """What a text table is by the names in its first line."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            first = file.readline(10_000)
    except OSError:
        return ""
    for separator in (",", "\t", ";"):
        if separator in first:
            return _kind_of_columns([name.strip().strip('"') for name in first.split(separator)])
    return ""


def _kind_of_columns(names: list[str]) -> str:
    from penstock.formats.tables import COLUMN_NAMES, plain

    there = {plain(name) for name in names}

    def has(role: str) -> bool:
        return any(name in there for name in COLUMN_NAMES[role])

    layouts = (("x1", "y1", "x2", "y2"), ("x", "y", "w", "h"), ("cx", "cy", "w", "h"), ("geometry",))
    if any(all(has(role) for role in layout) for layout in layouts):
        return "Boxes"
    return "Images" if has("image") else ""
