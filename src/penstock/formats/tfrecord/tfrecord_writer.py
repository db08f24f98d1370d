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

from penstock.formats.exporting.pieces import Brief, Finished, Piece, PieceWriter
from penstock.formats.exporting.rendering import Rendering
from penstock.formats.exporting.shard_files import ShardFile, shard_limits, shard_name
from penstock.formats.exporting.tables import write_classes
from penstock.formats.tfrecord.example_encoding import ExampleEncoder
from penstock.storage.writing.preparing import Row

# What tf.io.decode_image reads, without animations.
KEPT_KINDS = ("jpeg", "png", "bmp")


class TFRecord:
    """The format `tfrecord`: train-00000.tfrecord, val-00000.tfrecord … or samples-00000.tfrecord."""

    whole_videos = False

    def __init__(self, brief: Brief) -> None:
        self.brief = brief
        self.limits = shard_limits(brief.options)

    def rendering(self) -> Rendering:
        encoder = ExampleEncoder(self.brief.roles)
        return Rendering(KEPT_KINDS, self.brief.options.quality, surround=encoder, frame=encoder.frame)

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
