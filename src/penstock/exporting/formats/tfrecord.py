"""TFRecord shards of tf.train.Example, as TensorFlow's own datasets and its object detection name the features.

| feature                                          | of                                                        |
|--------------------------------------------------|-----------------------------------------------------------|
| image/encoded, image/format                      | the bytes of the image; JPEG, PNG or BMP                   |
| image/height, image/width, image/filename        | its size, and the key of the sample                        |
| image/class/label, image/class/text              | the class, from 0, −1 for none; and its name               |
| image/object/bbox/{xmin,ymin,xmax,ymax}          | boxes as parts of width and height                         |
| image/object/class/label, image/object/class/text | their classes, from 1 as label_map.pbtxt counts; and names |
| group                                            | what must stay in one split                                |
| the name of any other field                      | numbers as int64 or float32; texts, masks (PNG) as bytes   |
| <name>/shape                                     | of arrays whose size differs                               |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.codecs.examples import encode_around, encode_example
from penstock.codecs.headers import sniff
from penstock.codecs.tfrecord import ends_of_records
from penstock.exporting.formats.shard_files import ShardFile, shard_limits, shard_name
from penstock.exporting.pieces import Brief, Finished, Piece, PieceWriter
from penstock.exporting.rendering import Rendering
from penstock.exporting.roles import Roles
from penstock.exporting.tables import write_classes
from penstock.packing.preparing import Row
from penstock.samples import Field

# What tf.io.decode_image reads, without animations.
KEPT_KINDS = ("jpeg", "png", "bmp")

SIDES = ("xmin", "ymin", "xmax", "ymax")


@dataclass(frozen=True)
class ExampleEncoder:
    """What an Example has before and behind the image; runs in workers."""

    roles: Roles

    def __call__(self, row: Row) -> tuple[bytes, bytes]:
        features = self.features(row)
        if self.roles.image is None:
            return encode_example(features), b""
        return encode_around(features, "image/encoded", len(row.payload))

    def features(self, row: Row) -> dict[str, Any]:
        """All features but the bytes of the image."""
        values = row.values
        found: dict[str, Any] = {"image/filename": values["key"]}
        if self.roles.image is not None:
            found["image/format"] = sniff(row.payload)
            found["image/height"], found["image/width"] = row.height, row.width
        if self.roles.label is not None:
            label = int(values[self.roles.label.name])
            found["image/class/label"], found["image/class/text"] = label, self.roles.class_name(label)
        if self.roles.boxes is not None:
            found.update(self._boxes(row))
        if values.get("group") is not None:
            found["group"] = values["group"]
        for field in self.roles.others:
            found.update(_other(field, values[field.name]))
        return found

    def _boxes(self, row: Row) -> dict[str, Any]:
        boxes, labels = self.roles.boxes_of(row.values)
        parts = boxes / np.array([row.width, row.height] * 2, np.float32)
        found: dict[str, Any] = {f"image/object/bbox/{side}": parts[:, number] for number, side in enumerate(SIDES)}
        if self.roles.box_label is not None:
            found["image/object/class/label"] = labels + 1
            found["image/object/class/text"] = [self.roles.class_name(int(label)) for label in labels]
        return found


def frame_rows(rows: Sequence[Row]) -> None:
    """Make records of Examples; all those of a task in one call, which does not hold the interpreter."""
    pieces = tuple([piece for row in rows for piece in (row.before, row.payload, row.behind)])
    for row, (head, tail) in zip(rows, ends_of_records(pieces), strict=True):
        row.before, row.behind = head + row.before, row.behind + tail


def _other(field: Field, value: Any) -> dict[str, Any]:
    found = {field.name: value}
    if field.kind == "array" and None in (field.shape or ()):
        found[f"{field.name}/shape"] = np.array(np.asarray(value).shape, np.int64)
    return found


class TFRecord:
    """The format `tfrecord`: train-00000.tfrecord, val-00000.tfrecord … or samples-00000.tfrecord."""

    whole_videos = False

    def __init__(self, brief: Brief) -> None:
        self.brief = brief
        self.limits = shard_limits(brief.options)

    def rendering(self) -> Rendering:
        encoder = ExampleEncoder(self.brief.roles)
        return Rendering(KEPT_KINDS, self.brief.options.quality, surround=encoder, frame=frame_rows)

    def left_out(self) -> tuple[str, ...]:
        return ()

    def begin(self, piece: Piece) -> PieceWriter:
        return _RecordWriter(ShardFile(self.brief.folder, shard_name(piece, "tfrecord"), piece))

    def finish(self, finished: Finished) -> None:
        classes = self.brief.roles.classes
        write_classes(self.brief.folder, classes)
        if classes and self.brief.roles.box_label is not None:
            items = [
                f"item {{\n  id: {number}\n  name: {_quoted(name)}\n}}\n" for number, name in enumerate(classes, 1)
            ]
            (self.brief.folder / "label_map.pbtxt").write_text("".join(items), encoding="utf-8")


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


class _RecordWriter:
    def __init__(self, file: ShardFile) -> None:
        self.file = file

    def add(self, row: Row) -> None:
        self.file.write(row.before, row.payload, row.behind)

    def close(self) -> None:
        self.file.close()

    def abandon(self) -> None:
        self.file.abandon()
