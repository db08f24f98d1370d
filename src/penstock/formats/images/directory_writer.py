"""A folder of images with a table.

images                                     frames of videos
  images/cat/1.jpg    named by their keys     mouse1/000000000.jpg   one folder for each video, frames from 0
  images/000000.jpg   or numbered             labels/mouse1.csv      behaviours of each frame, as DeepEthogram's
  labels.csv          path, label, …          frames.csv             path, video, frame, time, …
  boxes.csv           where there are boxes   videos.csv             video, frames, fps, width, height
  masks/…             where there are masks
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from penstock.codecs.headers import sniff
from penstock.formats.boxes.csv_writer import add_box_lines, write_boxes
from penstock.formats.exporting.pieces import MANY_FILES, Brief, Finished, Piece, PieceWriter, csv_line
from penstock.formats.exporting.rendering import ENDINGS, Rendering
from penstock.formats.exporting.roles import need_image
from penstock.formats.exporting.tables import shortest, write_classes, write_table
from penstock.formats.exporting.videos import frame_rate, video_of
from penstock.formats.exports.export_manifest import FRAMES_NAME
from penstock.formats.images.image_file_writer import ImageFiles
from penstock.samples import Field, Sample
from penstock.storage.writing.preparing import Row

LABELS, FRAMES, VIDEOS = "labels.csv", FRAMES_NAME, "videos.csv"
BEHAVIOURS = "behaviours"

# An array of more values is no column of a table.
MOST_VALUES = 32


class Directory:
    """The format `directory`."""

    whole_videos = True
    limits = MANY_FILES

    def __init__(self, brief: Brief) -> None:
        need_image(brief.roles, "directory")
        self.brief = brief
        roles = brief.roles
        self.behaviours = roles.behaviours if roles.is_video else None
        self.masks = roles.holding(["mask", "image"])
        self.columns = [field for field in roles.others if self._is_column(field)]
        if roles.is_video:
            for taken in ("labels", "masks"):
                brief.names.take(taken)

    def _is_column(self, field: Field) -> bool:
        if field == self.behaviours or (self.brief.roles.is_video and field.name in ("frame", "time")):
            return False
        if field.kind in ("number", "text"):
            return True
        shape = field.shape
        return field.kind in ("labels", "array") and shape is not None and _values(shape) <= MOST_VALUES

    def rendering(self) -> Rendering:
        return Rendering(quality=self.brief.options.quality)

    def left_out(self) -> tuple[str, ...]:
        video = ("frame", "time") if self.brief.roles.is_video else ()
        held = {field.name for field in (*self.columns, *self.masks)} | set(video)
        return tuple(
            field.name for field in self.brief.roles.others if field.name not in held and field != self.behaviours
        )

    def begin(self, piece: Piece) -> PieceWriter:
        if self.brief.roles.is_video:
            return _Frames(self, piece)
        if self.brief.options.layout == "numbered":
            return _Numbered(self.brief, piece, "images", self._write)
        return ImageFiles(self.brief, piece, "images", self._write)

    def _write(self, piece: Piece, row: Row, name: str, path: str) -> None:
        roles, values = self.brief.roles, row.values
        label = [] if roles.label is None else [roles.class_name(int(values[roles.label.name]))]
        cells = [path, *label, *self.brief.places_of(piece, row), values["key"], *self._cells(piece, values, name)]
        piece.add_line(LABELS, csv_line(cells))
        if roles.boxes is not None:
            add_box_lines(self.brief, piece, row, path)

    def _cells(self, piece: Piece, values: Sample, name: str) -> list[str]:
        """The other fields of a sample as columns; masks become files."""
        cells = [_cell(values[field.name]) for field in self.columns]
        for field in self.masks:
            path = f"masks/{field.name}/{name}.png"
            piece.add_file(self.brief.folder, path, values[field.name])
            cells.append(path)
        return cells

    @property
    def _other_columns(self) -> list[str]:
        return [field.name for field in (*self.columns, *self.masks)]

    def add_frame(self, piece: Piece, row: Row) -> None:
        """A frame of a video: its file, its line, its behaviours."""
        values = row.values
        frame = int(values["frame"])
        path = f"{piece.unit}/{frame:09d}.{ENDINGS[sniff(row.payload)]}"
        piece.add_file(self.brief.folder, path, row.payload)
        time = [shortest(values["time"])] if "time" in values else []
        others = self._cells(piece, values, f"{piece.unit}/{frame:09d}")
        places = self.brief.places_of(piece, row)
        piece.add_line(FRAMES, csv_line([path, video_of(row), frame, *time, *places, *others]))
        if self.behaviours is not None:
            piece.add_line(BEHAVIOURS, csv_line([frame, *map(int, values[self.behaviours.name])]))
        if self.brief.roles.boxes is not None:
            add_box_lines(self.brief, piece, row, path)

    def finish(self, finished: Finished) -> None:
        roles, folder = self.brief.roles, self.brief.folder
        write_classes(folder, roles.classes)
        if roles.boxes is not None:
            write_boxes(self.brief, finished)
        if roles.is_video:
            self._write_video_tables(finished)
            return
        label = [] if roles.label is None else ["label"]
        header = ["path", *label, *self.brief.place_names, "key", *self._other_columns]
        write_table(folder / LABELS, header, finished.lines(LABELS))

    def _write_video_tables(self, finished: Finished) -> None:
        folder = self.brief.folder
        time = ["time"] if "time" in self.brief.schema else []
        header = ["path", "video", "frame", *time, *self.brief.place_names, *self._other_columns]
        write_table(folder / FRAMES, header, finished.lines(FRAMES))
        videos = [frame_rate(unit) for unit in finished.units]
        facts = ("name", "frames", "fps", "width", "height")
        lines = [csv_line(["" if video[fact] is None else video[fact] for fact in facts]) for video in videos]
        write_table(folder / VIDEOS, ("video", *facts[1:]), lines)
        if self.behaviours is not None:
            for video in videos:
                path = folder / "labels" / f"{video['name']}.csv"
                lines_of = finished.lines(BEHAVIOURS, unit=video["name"])
                write_table(path, ["", *self.brief.roles.classes], lines_of)


class _Numbered(ImageFiles):
    """Files that are called by their place in the export, split by split."""

    def name_of(self, row: Row) -> str:
        return f"{self.piece.split}/{self.piece.position:09d}" if self.piece.split else f"{self.piece.position:09d}"


class _Frames:
    """The frames of one video."""

    def __init__(self, directory: Directory, piece: Piece) -> None:
        self.directory, self.piece = directory, piece

    def add(self, row: Row) -> None:
        self.directory.add_frame(self.piece, row)

    def close(self) -> None:
        """Every file is whole already."""

    def abandon(self) -> None:
        """Nothing is open."""


def _values(shape: tuple[int | None, ...]) -> int:
    return MOST_VALUES + 1 if None in shape else int(np.prod([side or 0 for side in shape]))


def _cell(value: Any) -> str:
    """A value as a cell: numbers as short as they can be, vectors as JSON."""
    if isinstance(value, np.ndarray) and value.ndim:
        return json.dumps(value.tolist())
    return value if isinstance(value, str) else shortest(value)
