"""Pascal VOC: JPEGImages/x.jpg, Annotations/x.xml, ImageSets/Main/train.txt. The numbers are those of Penstock.

VOC's own files count pixels from 1, and programs differ in what they make of that; Penstock shifts nothing either way.
"""

from __future__ import annotations

from xml.sax.saxutils import escape

from penstock.formats.boxes.box_writer import BoxFormat, class_name
from penstock.formats.exporting.pieces import Finished, Piece
from penstock.formats.exporting.tables import shortest, write_classes
from penstock.storage.writing.preparing import Row

SETS = "sets"
CORNERS = ("xmin", "ymin", "xmax", "ymax")


class Voc(BoxFormat):
    """The format `voc`; all files lie in one folder, so slashes in keys become _."""

    name = "voc"
    image_folder = "JPEGImages"
    keeps_folders = False

    def annotate(self, piece: Piece, row: Row, name: str, path: str) -> None:
        boxes, labels = self.brief.roles.boxes_of(row.values)
        objects = [
            _object(class_name(self.brief.roles, int(label)), [shortest(value) for value in box])
            for box, label in zip(boxes, labels, strict=True)
        ]
        text = "\n".join(
            [
                "<annotation>",
                "  <folder>JPEGImages</folder>",
                f"  <filename>{escape(path.rsplit('/', 1)[-1])}</filename>",
                f"  <size><width>{row.width}</width><height>{row.height}</height><depth>3</depth></size>",
                "  <segmented>0</segmented>",
                *objects,
                "</annotation>\n",
            ]
        )
        piece.add_file(self.brief.folder, f"Annotations/{name}.xml", text.encode())
        piece.add_line(SETS, name)

    def write_annotations(self, finished: Finished) -> None:
        write_classes(self.brief.folder, self.brief.roles.classes)
        folder = self.brief.folder / "ImageSets" / "Main"
        folder.mkdir(parents=True, exist_ok=True)
        for split in finished.splits or ("",):
            with (folder / f"{split or 'all'}.txt").open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in finished.lines(SETS, unit=split))


def _object(name: str, corners: list[str]) -> str:
    sides = "".join(f"<{side}>{value}</{side}>" for side, value in zip(CORNERS, corners, strict=True))
    return (
        f"  <object><name>{escape(name)}</name><pose>Unspecified</pose><truncated>0</truncated>"
        f"<difficult>0</difficult><bndbox>{sides}</bndbox></object>"
    )
