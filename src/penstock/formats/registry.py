"""The formats: whoever brings another one writes it down here, in one line. docs/inside/add-a-format.md shows how."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.formats.arrow.format import HUGGING_FACE, PARQUET
from penstock.formats.boxes.format import COCO, CSV, LAYERS, VOC, YOLO
from penstock.formats.deepethogram.format import DEEPETHOGRAM
from penstock.formats.exports.format import EXPORT
from penstock.formats.format import Format, Found, Look, load
from penstock.formats.hdf5.format import HDF5
from penstock.formats.images.format import DIRECTORY
from penstock.formats.mds.format import MDS
from penstock.formats.numpy.format import NUMPY
from penstock.formats.rasters.format import RASTERS
from penstock.formats.tfrecord.format import TFRECORD
from penstock.formats.videos.format import VIDEOS
from penstock.formats.webdataset.format import WEBDATASET

# In the order in which they are asked: first whether a folder says what it is, then what its files are.
FORMATS: tuple[Format, ...] = (
    EXPORT,
    HUGGING_FACE,
    DEEPETHOGRAM,
    MDS,
    TFRECORD,
    HDF5,
    DIRECTORY,
    WEBDATASET,
    NUMPY,
    YOLO,
    COCO,
    VOC,
    CSV,
    LAYERS,
    PARQUET,
    VIDEOS,
    RASTERS,
)


def recognised(path: Path) -> Found:
    """The class that reads a path: what a folder says of itself, then the answer of the first format that has one."""
    look = Look(path, FORMATS)
    if look.is_folder:
        marked = next((one.kind for one in FORMATS if one.marks is not None and one.marks(path)), "")
        if marked:
            return Found(marked)
    answers = (one.answer(look) for one in FORMATS)
    return next((answer for answer in answers if answer is not None), Found("", look.seen or "nothing"))


def reader_of(kind: str) -> Callable[..., Any]:
    """A source class by its name; its module is imported now."""
    made: Callable[..., Any] = load(next(one.reader for one in FORMATS if one.kind == kind))
    return made


def written_formats() -> dict[str, Format]:
    """The formats that can be written, by the name that `export(to=…)` takes."""
    return {one.name: one for one in FORMATS if one.writer}
