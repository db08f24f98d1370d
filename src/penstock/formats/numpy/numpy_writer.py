"""NumPy: one .npy file for each field, the first axis counts samples; or all of them in one .npz.

    image.npy       N×H×W×3 uint8           label.npy, frame.npy, time.npy, labels.npy …   one row for each sample
    key.npy, group.npy, split.npy           texts
    boxes.npy       the boxes of all samples one after another; boxes_shape.npy has how many each sample has (n, 4)
    classes.npy     names of the classes

Fields whose size differs are written as boxes are. Videos have a folder each. Nothing is held in memory: rows are
appended, and the header is written when their number is known.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.formats.exporting.pieces import MANY_FILES, Brief, Finished, Piece, PieceWriter
from penstock.formats.exporting.rendering import Rendering
from penstock.formats.numpy.npy_writer import NpyFile, finish_header, write_texts
from penstock.samples import Field
from penstock.storage.writing.preparing import Row


class Numpy:
    """The format `numpy`."""

    whole_videos = True
    limits = MANY_FILES

    def __init__(self, brief: Brief) -> None:
        self.brief = brief
        schema = brief.schema
        pictures = brief.roles.holding(["mask", "image"])
        self.texts = [field.name for field in schema.fields if field.kind == "text"]
        self.numbers = [field for field in schema.fields if field.kind != "text" and field not in pictures]
        self._left_out = tuple(field.name for field in pictures)

    def rendering(self) -> Rendering:
        return Rendering(kept_kinds=())

    def left_out(self) -> tuple[str, ...]:
        """Masks and further images, which may have any size."""
        return self._left_out

    @property
    def text_names(self) -> list[str]:
        return ["key", *self.brief.place_names, *self.texts]

    def folder(self, unit: str) -> str:
        """The folder of a video, with a slash; all splits lie in one."""
        return f"{unit}/" if self.brief.roles.is_video else ""

    def begin(self, piece: Piece) -> PieceWriter:
        return _RowWriter(self, piece)

    def finish(self, finished: Finished) -> None:
        for unit in self._units(finished):
            folder = self.brief.folder / self.folder(unit or "")
            for path in sorted(folder.glob("*.npy")):
                finish_header(path)
            for name in self.text_names:
                write_texts(folder / f"{name}.npy", _texts(finished, name, unit))
            if self.brief.roles.classes:
                write_texts(folder / "classes.npy", lambda: self.brief.roles.classes)
            if self.brief.options.layout == "npz":
                _zip(folder, self.brief.folder / f"{unit or 'samples'}.npz")

    def _units(self, finished: Finished) -> list[str | None]:
        return [unit["name"] for unit in finished.units] if self.brief.roles.is_video else [None]


class _RowWriter:
    """Appends the rows of one piece to the files of its output."""

    def __init__(self, numpy: Numpy, piece: Piece) -> None:
        self.numpy, self.piece = numpy, piece
        self.prefix = numpy.folder(piece.unit)
        self.root = numpy.brief.folder
        (self.root / self.prefix).mkdir(exist_ok=True)
        self.files: dict[str, NpyFile] = {}

    def add(self, row: Row) -> None:
        for field in self.numpy.numbers:
            if field == self.numpy.brief.roles.image:
                self._add_pixels(field.name, row)
            else:
                self._add_value(field, row.values[field.name])
        places = dict(zip(self.numpy.brief.place_names, self.numpy.brief.places_of(self.piece, row), strict=True))
        for name in self.numpy.text_names:
            self.piece.add_line(name, json.dumps(str(places.get(name, row.values.get(name)))))

    def _add_pixels(self, name: str, row: Row) -> None:
        shape, known = (row.height, row.width, 3), self._file(name).row_shape
        if known is not None and known != shape:
            raise OptionError(
                f"an array needs one size for all images: {row.values['key']} has {row.width}x{row.height} px and the "
                f"first had {known[1]}x{known[0]}. Pass size='WIDTHxHEIGHT', or export to hdf5 or directory."
            )
        self._file(name).append(row.payload, np.dtype(np.uint8), shape)

    def _add_value(self, field: Field, value: Any) -> None:
        dtype = {"class": "int64", "boxes": "float32"}.get(field.kind, field.dtype or "float64")
        array = np.ascontiguousarray(value, np.dtype(dtype))
        if field.kind in ("class", "number"):
            self._append(field.name, array, ())
        elif field.kind == "boxes" or field.shape is None or None in field.shape:
            rows = (4,) if field.kind == "boxes" else tuple(side or 0 for side in (field.shape or ())[1:])
            self._append(field.name, array, () if 0 in rows else rows)
            shape = np.array(np.shape(value), np.int64)
            self._append(f"{field.name}_shape", shape, shape.shape)
        else:
            self._append(field.name, array, array.shape)

    def _append(self, name: str, array: NDArray[Any], row_shape: tuple[int, ...]) -> None:
        self._file(name).append(array.tobytes(), array.dtype, row_shape)

    def _file(self, name: str) -> NpyFile:
        if name not in self.files:
            self.files[name] = NpyFile(self.root / f"{self.prefix}{name}.npy")
        return self.files[name]

    def close(self) -> None:
        for name, file in self.files.items():
            self.piece.note_file(f"{self.prefix}{name}.npy", file.close())

    def abandon(self) -> None:
        for file in self.files.values():
            file.abandon()


def _texts(finished: Finished, table: str, unit: str | None) -> Callable[[], Iterator[str]]:
    return lambda: (json.loads(line) for line in finished.lines(table, unit=unit))


def _zip(folder: Path, target: Path) -> None:
    """All arrays of a folder as one .npz, stored as they are so that they can be mapped."""
    arrays = sorted(folder.glob("*.npy"))
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for path in arrays:
            # The same time for all: equal data, equal bytes.
            with path.open("rb") as file, archive.open(zipfile.ZipInfo(path.name), "w", force_zip64=True) as member:
                shutil.copyfileobj(file, member, 1 << 20)
    for path in arrays:
        path.unlink()
    if folder != target.parent:
        folder.rmdir()
