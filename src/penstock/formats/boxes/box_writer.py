"""What all formats of boxes share: an image file for each sample, and a class for every box."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from penstock.formats.exporting.pieces import MANY_FILES, Brief, Finished, Piece, PieceWriter, csv_line
from penstock.formats.exporting.rendering import Rendering
from penstock.formats.exporting.roles import Roles, need_boxes
from penstock.formats.exporting.tables import write_table
from penstock.formats.exports.export_manifest import SAMPLES_NAME
from penstock.formats.images.image_file_writer import ImageFiles
from penstock.storage.writing.preparing import Row


class BoxFormat(ABC):
    """Images below `image_folder`, and beside each what `annotate` writes of its boxes."""

    name = ""
    image_folder = "images"
    keeps_folders = True  # of keys with slashes
    whole_videos = False
    limits = MANY_FILES

    def __init__(self, brief: Brief) -> None:
        need_boxes(brief.roles, self.name)
        self.brief = brief

    def rendering(self) -> Rendering:
        return Rendering(quality=self.brief.options.quality, check=EveryBoxHasAClass(self.brief.roles))

    def left_out(self) -> tuple[str, ...]:
        return beyond_boxes(self.brief.roles)

    def begin(self, piece: Piece) -> PieceWriter:
        return ImageFiles(self.brief, piece, self.folder_of(piece), self._write, folders=self.keeps_folders)

    def _write(self, piece: Piece, row: Row, name: str, path: str) -> None:
        places = self.brief.places_of(piece, row)
        piece.add_line(SAMPLES_NAME, csv_line([path, row.values["key"], *places]))
        self.annotate(piece, row, name, path)

    def finish(self, finished: Finished) -> None:
        """Write the table of samples, whose keys and groups have no place in these formats, and what the format has."""
        header = ("path", "key", *self.brief.place_names)
        write_table(self.brief.folder / SAMPLES_NAME, header, finished.lines(SAMPLES_NAME))
        self.write_annotations(finished)

    @abstractmethod
    def write_annotations(self, finished: Finished) -> None:
        """Write what needs all pieces."""

    def folder_of(self, piece: Piece) -> str:
        return self.image_folder

    @abstractmethod
    def annotate(self, piece: Piece, row: Row, name: str, path: str) -> None:
        """Write down the boxes of a sample whose image is `path`."""


@dataclass(frozen=True)
class EveryBoxHasAClass:
    """Raises where a box is not labelled: in the worker, so that the sample is named."""

    roles: Roles

    def __call__(self, row: Row) -> None:
        _, labels = self.roles.boxes_of(row.values)
        if len(labels) and int(labels.min()) < 0:
            raise ValueError(f"box {int(labels.argmin())} has no class, which this format cannot say")


def class_names(roles: Roles) -> tuple[str, ...]:
    """The classes of boxes; one that is called object where boxes have none."""
    return roles.classes if roles.box_label is not None and roles.classes else ("object",)


def class_name(roles: Roles, number: int) -> str:
    names = class_names(roles)
    return names[number] if number < len(names) else str(number)


def beyond_boxes(roles: Roles) -> tuple[str, ...]:
    """The fields that a format of boxes has no place for."""
    fields = roles.others if roles.label is None else (roles.label, *roles.others)
    return tuple(field.name for field in fields)
