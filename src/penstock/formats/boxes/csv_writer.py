"""DeepForest's table: boxes.csv with xmin, ymin, xmax, ymax, label, image_path, and the images."""

from __future__ import annotations

from penstock.formats.boxes.box_writer import BoxFormat, class_name
from penstock.formats.exporting.pieces import Brief, Finished, Piece, csv_line
from penstock.formats.exporting.tables import shortest, write_classes, write_table
from penstock.storage.writing.preparing import Row

BOXES = "boxes.csv"
COLUMNS = ("xmin", "ymin", "xmax", "ymax", "label", "image_path")


class Csv(BoxFormat):
    """The format `csv`. An image without boxes has one row 0,0,0,0, as DeepForest writes it."""

    name = "csv"

    def annotate(self, piece: Piece, row: Row, name: str, path: str) -> None:
        add_box_lines(self.brief, piece, row, path)

    def write_annotations(self, finished: Finished) -> None:
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
