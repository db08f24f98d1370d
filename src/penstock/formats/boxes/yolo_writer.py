"""YOLO: images/train/x.jpg, labels/train/x.txt with `class x_centre y_centre width height` in fractions, data.yaml."""

from __future__ import annotations

import json

import numpy as np

from penstock.formats.boxes.box_writer import BoxFormat, class_names
from penstock.formats.exporting.pieces import Finished, Piece
from penstock.storage.writing.preparing import Row


class Yolo(BoxFormat):
    """The format `yolo`. An image without boxes has an empty text."""

    name = "yolo"

    def folder_of(self, piece: Piece) -> str:
        return _in_split("images", piece)

    def annotate(self, piece: Piece, row: Row, name: str, path: str) -> None:
        boxes, labels = self.brief.roles.boxes_of(row.values)
        wide = boxes.astype(np.float64) / np.array([row.width, row.height] * 2)
        centre, size = (wide[:, :2] + wide[:, 2:]) / 2, wide[:, 2:] - wide[:, :2]
        lines = [
            f"{label} {' '.join(f'{value:.10f}' for value in values)}\n"
            for label, values in zip(labels, np.concatenate([centre, size], axis=1), strict=True)
        ]
        piece.add_file(self.brief.folder, f"{_in_split('labels', piece)}/{name}.txt", "".join(lines).encode())

    def write_annotations(self, finished: Finished) -> None:
        splits = {split: f"images/{split}" for split in finished.splits} or {"train": "images", "val": "images"}
        names = class_names(self.brief.roles)
        # Every JSON text is YAML, whatever stands in a name.
        lines = [f"{split}: {json.dumps(folder)}" for split, folder in splits.items()]
        lines += [f"nc: {len(names)}", "names:"]
        lines += [f"  {number}: {json.dumps(name, ensure_ascii=False)}" for number, name in enumerate(names)]
        (self.brief.folder / "data.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _in_split(folder: str, piece: Piece) -> str:
    return f"{folder}/{piece.split}" if piece.split else folder
