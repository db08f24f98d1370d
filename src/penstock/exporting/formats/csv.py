"""DeepForest's table: boxes.csv with xmin, ymin, xmax, ymax, label, image_path, and the images."""

from __future__ import annotations

from penstock.exporting.formats.box_checks import EveryBoxHasAClass, beyond_boxes, class_name
from penstock.exporting.formats.image_files import ImageFiles
from penstock.exporting.pieces import MANY_FILES, Brief, Finished, Piece, PieceWriter, csv_line
from penstock.exporting.rendering import Rendering
from penstock.exporting.roles import need_boxes
from penstock.exporting.tables import shortest, write_classes, write_table
from penstock.packing.preparing import Row

BOXES = "boxes.csv"
COLUMNS = ("xmin", "ymin", "xmax", "ymax", "label", "image_path")


class Csv:
    """The format `csv`. An image without boxes has one row 0,0,0,0, as DeepForest writes it."""

    whole_videos = False
    limits = MANY_FILES

    def __init__(self, brief: Brief) -> None:
        need_boxes(brief.roles, "csv")
        self.brief = brief

    def rendering(self) -> Rendering:
        return Rendering(quality=self.brief.options.quality, check=EveryBoxHasAClass(self.brief.roles))

    def left_out(self) -> tuple[str, ...]:
        return beyond_boxes(self.brief.roles)

    def begin(self, piece: Piece) -> PieceWriter:
        return ImageFiles(self.brief, piece, "images", self._write)

    def _write(self, piece: Piece, row: Row, name: str, path: str) -> None:
        add_box_lines(self.brief, piece, row, path)

    def finish(self, finished: Finished) -> None:
        write_boxes(self.brief, finished)
        write_classes(self.brief.folder, self.brief.roles.classes)


def add_box_lines(brief: Brief, piece: Piece, row: Row, path: str) -> None:
    """One line for each box, or the one of an image without boxes."""
    boxes, labels = brief.roles.boxes_of(row.values)
    places = brief.places_of(piece, row)
    for box, label in zip(boxes, labels.tolist(), strict=True):
        corners = [shortest(value) for value in box]
        piece.add_line(BOXES, csv_line([*corners, class_name(brief.roles, label), path, *places]))
    if not len(boxes):
        piece.add_line(BOXES, csv_line([0, 0, 0, 0, class_name(brief.roles, 0), path, *places]))


def write_boxes(brief: Brief, finished: Finished) -> None:
    write_table(brief.folder / BOXES, (*COLUMNS, *brief.place_names), finished.lines(BOXES))
