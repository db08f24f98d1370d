"""WebDataset: tar shards; the files of a sample follow one another and share their name up to the first dot.

    train-00000.tar      cat/1.jpg          the image
                         cat/1.cls          the number of its class, from 0
                         cat/1.json         key, group, boxes (x1 y1 x2 y2 in pixels), box_label, numbers, texts
                         cat/1.mask.png     masks and further images
                         cat/1.depth.npy    arrays
    classes.txt

Dots in a name become _, as a dot ends it. Times, owners and rights are the same for all: equal data, equal bytes.
"""

from __future__ import annotations

import io
import json
import tarfile
from typing import Any

import numpy as np

from penstock.codecs.headers import sniff
from penstock.formats.exporting.names import clean
from penstock.formats.exporting.pieces import Brief, Finished, Piece, PieceWriter
from penstock.formats.exporting.rendering import ENDINGS, Rendering
from penstock.formats.exporting.shard_files import ShardFile, shard_limits, shard_name
from penstock.formats.exporting.tables import write_classes
from penstock.storage.writing.preparing import Row

BLOCK = 512
# Two empty blocks end an archive, and its size is a multiple of this.
RECORD = 20 * BLOCK


class WebDataset:
    """The format `webdataset`."""

    whole_videos = False

    def __init__(self, brief: Brief) -> None:
        self.brief = brief
        self.limits = shard_limits(brief.options)
        roles = brief.roles
        self.pictures = roles.holding(["mask", "image"])
        self.arrays = roles.holding(["array"])
        self.plain = roles.holding(["number", "text", "labels"])

    def rendering(self) -> Rendering:
        return Rendering(quality=self.brief.options.quality)

    def left_out(self) -> tuple[str, ...]:
        return ()

    def begin(self, piece: Piece) -> PieceWriter:
        return _TarWriter(self, piece)

    def members(self, row: Row) -> list[tuple[str, bytes | memoryview]]:
        """Endings and contents of the files of a sample."""
        roles, values = self.brief.roles, row.values
        found: list[tuple[str, bytes | memoryview]] = []
        if roles.image is not None:
            found.append((ENDINGS[sniff(row.payload)], row.payload))
        if roles.label is not None:
            found.append(("cls", str(int(values[roles.label.name])).encode()))
        found.append(("json", json.dumps(self._facts(row), ensure_ascii=False).encode()))
        found += [(f"{field.name}.png", values[field.name]) for field in self.pictures]
        return found + [(f"{field.name}.npy", _npy(values[field.name])) for field in self.arrays]

    def _facts(self, row: Row) -> dict[str, Any]:
        values = row.values
        facts: dict[str, Any] = {name: values[name] for name in ("key", "group") if values.get(name) is not None}
        if self.brief.roles.boxes is not None:
            boxes, labels = self.brief.roles.boxes_of(values)
            facts["boxes"] = boxes.astype(float).tolist()
            facts["box_label"] = labels.tolist()
        for field in self.plain:
            facts[field.name] = _plain(values[field.name])
        return facts

    def finish(self, finished: Finished) -> None:
        write_classes(self.brief.folder, self.brief.roles.classes)


class _TarWriter:
    def __init__(self, webdataset: WebDataset, piece: Piece) -> None:
        self.webdataset, self.piece = webdataset, piece
        self.file = ShardFile(webdataset.brief.folder, shard_name(piece, "tar"), piece)

    def add(self, row: Row) -> None:
        folder, slash, base = clean(str(row.values["key"])).rpartition("/")
        name = self.piece.claim(self.webdataset.brief.names, f"{folder}{slash}{base.replace('.', '_')}")
        for ending, data in self.webdataset.members(row):
            self._add(f"{name}.{ending}", data)

    def _add(self, name: str, data: bytes | memoryview) -> None:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        self.file.write(member.tobuf(tarfile.GNU_FORMAT), data, bytes(-len(data) % BLOCK))

    def close(self) -> None:
        self.file.write(bytes(2 * BLOCK))
        self.file.write(bytes(-self.file.size % RECORD))
        self.file.close()

    def abandon(self) -> None:
        self.file.abandon()


def _npy(value: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, np.asarray(value), allow_pickle=False)
    return out.getvalue()


def _plain(value: Any) -> Any:
    """A value as JSON holds it; what is not a number is null, as JSON has none."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    number = value.item() if hasattr(value, "item") else value
    return None if isinstance(number, float) and not np.isfinite(number) else number
