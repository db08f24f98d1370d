"""COCO: images/ and one JSON for each split (train.json), or annotations.json; `bbox` is x, y, width, height in pixels.

The ids of images, objects and categories count from 1, as COCO's own do; categories are the classes in their order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from penstock.formats.boxes.box_writer import BoxFormat, class_names
from penstock.formats.exporting.pieces import Finished, Piece
from penstock.storage.writing.preparing import Row

IMAGES, OBJECTS = "images", "annotations"


class Coco(BoxFormat):
    """The format `coco`. An image without boxes is listed alone."""

    name = "coco"

    def annotate(self, piece: Piece, row: Row, name: str, path: str) -> None:
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

    def write_annotations(self, finished: Finished) -> None:
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
