"""What a tf.train.Example has around its image: the features of a row, by the table in `tfrecord`.

Any row is encoded feature by feature. Rows that have nothing but image, class, boxes and group are encoded from parts
that come again and again, in a third of the time and to the same bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.codecs.headers import sniff
from penstock.formats.exporting.roles import Roles
from penstock.formats.tfrecord.example_records import records_around
from penstock.formats.tfrecord.examples import (
    bytes_entry,
    counted_text,
    encode_entries,
    encode_example,
    floats_entry,
    integers_entry,
    number_entry,
    texts_entry,
    varint,
)
from penstock.formats.tfrecord.framing import ends_of_records
from penstock.samples import Field
from penstock.storage.writing.preparing import Row

IMAGE = "image/encoded"
SIDES = ("xmin", "ymin", "xmax", "ymax")
# In the order of their names, which is that of the Example: the side, and its place in a box.
SORTED_SIDES = tuple(sorted((f"image/object/bbox/{side}", place) for place, side in enumerate(SIDES)))


@dataclass(frozen=True)
class ExampleEncoder:
    """The entries before and behind the image, then the record around them; runs in workers."""

    roles: Roles

    def __call__(self, row: Row) -> tuple[bytes, bytes]:
        if self.roles.image is None:
            return encode_example(self.features(row)), b""
        if self.roles.others:
            return _parted(self.features(row))
        return self._earlier(row), self._later(row)

    def frame(self, rows: Sequence[Row]) -> None:
        """Make records of Examples; all those of a task in one call, which does not hold the interpreter."""
        pieces = tuple([piece for row in rows for piece in (row.before, row.payload, row.behind)])
        if self.roles.image is not None:
            for row, (before, behind) in zip(rows, records_around(IMAGE, pieces), strict=True):
                row.before, row.behind = before, behind
            return
        for row, (head, tail) in zip(rows, ends_of_records(pieces), strict=True):
            row.before, row.behind = head + row.before, row.behind + tail

    # Any row

    def features(self, row: Row) -> dict[str, Any]:
        """All features but the bytes of the image."""
        values = row.values
        found: dict[str, Any] = {"image/filename": values["key"]}
        if self.roles.image is not None:
            found["image/format"] = _kind(row)
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

    # Rows of the common kind

    def _earlier(self, row: Row) -> bytes:
        group = row.values.get("group")
        entry = b"" if group is None else bytes_entry("group", group.encode())
        if self.roles.label is None:
            return entry
        label = int(row.values[self.roles.label.name])
        return entry + _class_entries(label, self.roles.class_name(label))

    def _later(self, row: Row) -> bytes:
        entries = bytes_entry("image/filename", row.values["key"].encode()) + _format_entries(_kind(row), row.height)
        if self.roles.boxes is not None:
            entries += self._box_entries(row)
        return entries + number_entry("image/width", row.width)

    def _box_entries(self, row: Row) -> bytes:
        boxes, labels = self.roles.boxes_of(row.values)
        sides = (boxes / _box_size(row.width, row.height)).astype("<f4", copy=False).T.tobytes()
        side_bytes = 4 * len(boxes)
        entries = [
            floats_entry(name, sides[place * side_bytes : (place + 1) * side_bytes]) for name, place in SORTED_SIDES
        ]
        if self.roles.box_label is not None:
            numbers = labels.tolist()
            names = map(self.roles.class_name, numbers)
            entries.append(integers_entry("image/object/class/label", b"".join([varint(one + 1) for one in numbers])))
            entries.append(texts_entry("image/object/class/text", b"".join(map(counted_text, names))))
        return b"".join(entries)


def _kind(row: Row) -> str:
    """The kind of the image: known of a file that is kept as it is."""
    return sniff(row.payload) if row.header is None else row.header.kind


def _other(field: Field, value: Any) -> dict[str, Any]:
    found = {field.name: value}
    if field.kind == "array" and None in (field.shape or ()):
        found[f"{field.name}/shape"] = np.array(np.asarray(value).shape, np.int64)
    return found


def _parted(features: dict[str, Any]) -> tuple[bytes, bytes]:
    earlier, later = _parted_names(tuple(features))
    return encode_entries(features, earlier), encode_entries(features, later)


# The same for every sample, or for many.


@functools.lru_cache(maxsize=64)
def _parted_names(names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The names before and behind the image, sorted."""
    return sorted(name for name in names if name < IMAGE), sorted(name for name in names if name > IMAGE)


@functools.lru_cache(maxsize=4096)
def _class_entries(label: int, text: str) -> bytes:
    return number_entry("image/class/label", label) + bytes_entry("image/class/text", text.encode())


@functools.lru_cache(maxsize=4096)
def _format_entries(kind: str, height: int) -> bytes:
    return bytes_entry("image/format", kind.encode()) + number_entry("image/height", height)


@functools.lru_cache(maxsize=1024)
def _box_size(width: int, height: int) -> Any:
    return np.array([width, height] * 2, np.float32)
