"""COCO: images/ and one JSON for each split (train.json), or annotations.json; `bbox` is x, y, width, height in pixels.

The ids of images, objects and categories count from 1, as COCO's own do; categories are the classes in their order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from penstock.exporting.formats.box_checks import EveryBoxHasAClass, beyond_boxes, class_names
from penstock.exporting.formats.image_files import ImageFiles
from penstock.exporting.pieces import MANY_FILES, Brief, Finished, Piece, PieceWriter
from penstock.exporting.rendering import Rendering
from penstock.exporting.roles import need_boxes
from penstock.packing.preparing import Row

IMAGES, OBJECTS = "images", "annotations"


class Coco:
    """The format `coco`. An image without boxes is listed alone."""

    whole_videos = False
    limits = MANY_FILES

    def __init__(self, brief: Brief) -> None:
        need_boxes(brief.roles, "coco")
        self.brief = brief

    def rendering(self) -> Rendering:
        return Rendering(quality=self.brief.options.quality, check=EveryBoxHasAClass(self.brief.roles))

    def left_out(self) -> tuple[str, ...]:
        return beyond_boxes(self.brief.roles)

    def begin(self, piece: Piece) -> PieceWriter:
        return ImageFiles(self.brief, piece, "images", self._write)

    def _write(self, piece: Piece, row: Row, name: str, path: str) -> None:
        image = {"id": piece.position + 1, "file_name": path, "width": row.width, "height": row.height}
        piece.add_line(IMAGES, json.dumps(image, ensure_ascii=False))
        boxes, labels = self.brief.roles.boxes_of(row.values)
        for (x1, y1, x2, y2), label in zip(boxes.astype(float).tolist(), labels.tolist(), strict=True):
            found = {
                "image_id": piece.position + 1,
                "category_id": label + 1,
                "bbox": [x1, y1, x2 - x1, y2 - y1],
                "area": (x2 - x1) * (y2 - y1),
                "iscrowd": 0,
                "segmentation": [],
            }
            piece.add_line(OBJECTS, json.dumps(found))

    def finish(self, finished: Finished) -> None:
        for split in finished.splits or ("",):
            path = self.brief.folder / f"{split or 'annotations'}.json"
            self._write_json(path, finished.lines(IMAGES, unit=split), finished.lines(OBJECTS, unit=split))

    def _write_json(self, path: Path, images: Iterable[str], objects: Iterable[str]) -> None:
        names = class_names(self.brief.roles)
        categories = [json.dumps({"id": number, "name": name}) for number, name in enumerate(names, 1)]
        numbered = (f'{{"id": {number}, {line[1:]}' for number, line in enumerate(objects, 1))
        with path.open("w", encoding="utf-8") as file:
            for start, name, lines in (
                ("{", "images", images),
                ("],", "annotations", numbered),
                ("],", "categories", categories),
            ):
                file.write(f'{start}\n"{name}": [')
                for count, line in enumerate(lines):
                    file.write(f"{',' if count else ''}\n{line}")
                file.write("\n")
            file.write("]\n}\n")
