"""YOLO: images/train/x.jpg, labels/train/x.txt with `class x_centre y_centre width height` in fractions, data.yaml."""

from __future__ import annotations

import json

import numpy as np

from penstock.exporting.formats.box_checks import EveryBoxHasAClass, beyond_boxes, class_names
from penstock.exporting.formats.image_files import ImageFiles
from penstock.exporting.pieces import MANY_FILES, Brief, Finished, Piece, PieceWriter
from penstock.exporting.rendering import Rendering
from penstock.exporting.roles import need_boxes
from penstock.packing.preparing import Row


class Yolo:
    """The format `yolo`. An image without boxes has an empty text."""

    whole_videos = False
    limits = MANY_FILES

    def __init__(self, brief: Brief) -> None:
        need_boxes(brief.roles, "yolo")
        self.brief = brief

    def rendering(self) -> Rendering:
        return Rendering(quality=self.brief.options.quality, check=EveryBoxHasAClass(self.brief.roles))

    def left_out(self) -> tuple[str, ...]:
        return beyond_boxes(self.brief.roles)

    def begin(self, piece: Piece) -> PieceWriter:
        return ImageFiles(self.brief, piece, "/".join(["images", *([piece.split] if piece.split else [])]), self._write)

    def _write(self, piece: Piece, row: Row, name: str, path: str) -> None:
        boxes, labels = self.brief.roles.boxes_of(row.values)
        wide = boxes.astype(np.float64) / np.array([row.width, row.height] * 2)
        centre, size = (wide[:, :2] + wide[:, 2:]) / 2, wide[:, 2:] - wide[:, :2]
        lines = [
            f"{label} {' '.join(f'{value:.10f}' for value in values)}\n"
            for label, values in zip(labels, np.concatenate([centre, size], axis=1), strict=True)
        ]
        folder = "/".join(["labels", *([piece.split] if piece.split else [])])
        piece.add_file(self.brief.folder, f"{folder}/{name}.txt", "".join(lines).encode())

    def finish(self, finished: Finished) -> None:
        splits = {split: f"images/{split}" for split in finished.splits} or {"train": "images", "val": "images"}
        names = class_names(self.brief.roles)
        # Every JSON text is YAML, whatever stands in a name.
        lines = [f"{split}: {json.dumps(folder)}" for split, folder in splits.items()]
        lines += [f"nc: {len(names)}", "names:"]
        lines += [f"  {number}: {json.dumps(name, ensure_ascii=False)}" for number, name in enumerate(names)]
        (self.brief.folder / "data.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
