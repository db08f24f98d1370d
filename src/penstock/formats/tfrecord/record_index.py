"""The index of TFRecord files: one pass over the framing, and a look into every record for what flows ask at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.headers import UnreadableImage, read_header
from penstock.errors import DataError, Problem
from penstock.formats.indexed.class_numbers import ClassNumbers, Stored
from penstock.formats.indexed.indexed_source import (
    FILE,
    HEIGHT,
    IMAGE_LENGTH,
    IMAGE_OFFSET,
    LENGTH,
    OFFSET,
    WIDTH,
)
from penstock.formats.indexed.kept_indexes import Index, joined_texts
from penstock.formats.indexed.mapped_files import FileState, MappedFiles
from penstock.formats.tfrecord import framing as tfrecord
from penstock.formats.tfrecord.example_fields import Example, Layout, Wanted, layout_as_dict, layout_of
from penstock.formats.tfrecord.example_reading import BYTES, INTEGERS, decode_example, find_features
from penstock.formats.tfrecord.record_options import RecordOptions
from penstock.formats.tfrecord.record_values import Record, stored_box_classes

Numbers = NDArray[np.int64]
LOOKED_AT = 16  # records that tell the layout
_REMEDY = "Copy it again, or make it anew"


def scan_files(files: MappedFiles) -> list[Numbers]:
    """Offset and length of every payload of every file; DataError names all files that are cut or damaged."""
    numbers = range(len(files.states))
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        scans = list(pool.map(lambda number: tfrecord.scan(files[number].data), numbers))
    problems = [_damage(state.path, scan) for state, scan in zip(files.states, scans, strict=True) if scan.damage]
    if problems:
        raise DataError(problems)
    return [scan.places for scan in scans]


def _damage(path: str, scan: tfrecord.Scanned) -> Problem:
    record, offset = len(scan.places), scan.damage_offset
    if record == 0 and offset == 0:
        return Problem(path, None, f"is no TFRecord file, or its beginning is damaged: {scan.damage}", _REMEDY)
    return Problem(path, None, f"record {record} at byte {offset:,}: {scan.damage}", _REMEDY)


def first_examples(files: MappedFiles, places: Sequence[Numbers]) -> list[Example]:
    """The first whole records, from the files in turn."""
    found: list[Example] = []
    for number, of_file in enumerate(places):
        data = files[number].data
        for offset, length in of_file[:LOOKED_AT].tolist():
            if not tfrecord.is_whole(data, offset, length):
                continue
            try:
                found.append(decode_example(data[offset : offset + length]))
            except tfrecord.UnreadableRecord as error:
                what = f"record at byte {offset - tfrecord.HEAD_BYTES:,}: {error}"
                remedy = "Only records of that kind can be read"
                raise DataError([Problem(files.states[number].path, None, what, remedy)]) from error
        if len(found) >= LOOKED_AT:
            break
    return found


class Looked(NamedTuple):
    """What was seen in the records of one file."""

    columns: dict[str, NDArray[Any]]
    classes: list[Stored]  # of each record, where the layout has a class
    box_classes: set[Stored]
    keys: list[str]
    groups: list[str]


class FileLook:
    """A look into every record of one file."""

    def __init__(self, data: memoryview, places: Numbers, layout: Layout) -> None:
        self.data, self.places, self.layout = data, places, layout
        self._found, self.is_example = find_features(data, places, layout.features)
        self._positions = {name: position for position, name in enumerate(layout.features)}

    def look(self, default_key: str) -> Looked:
        label, boxes = self.layout.of_kind("class"), self.layout.box_label
        columns = {**self._image_columns(), **self._number_columns()}
        classes = [] if label is None else list(self._classes(label))
        box_classes = set() if boxes is None else set(self._box_classes(boxes))
        keys = self._keys(default_key)
        return Looked(columns, classes, box_classes, keys, self._groups(keys))

    def _feature(self, name: str) -> Numbers:
        """n×5 of one feature: kind, offset, size, count, first."""
        return self._found[:, self._positions[name]]

    def _image_columns(self) -> dict[str, Numbers]:
        """Where each image is; of those that cannot be read the length is 0 and the size 1×1."""
        image = self.layout.of_kind("image")
        if image is None:
            return {}
        feature = self._feature(image.features[0])
        is_there = (feature[:, 0] == BYTES) & (feature[:, 3] == 1)
        offset, length = np.where(is_there, feature[:, 1], 0), np.where(is_there, feature[:, 2], 0)
        sizes = self._sizes(image, offset, length)
        return {IMAGE_OFFSET: offset, IMAGE_LENGTH: length, WIDTH: sizes[:, 0], HEIGHT: sizes[:, 1]}

    def _sizes(self, image: Wanted, offsets: Numbers, lengths: Numbers) -> Numbers:
        sizes = np.ones((len(offsets), 2), np.int64)
        if image.pixels is not None:
            sizes[:] = image.pixels[1], image.pixels[0]
            return sizes
        for row, (offset, length) in enumerate(zip(offsets.tolist(), lengths.tolist(), strict=True)):
            try:
                header = read_header(self.data[offset : offset + length])
            except UnreadableImage:  # told when it is read
                continue
            sizes[row] = header.width, header.height
        return sizes

    def _number_columns(self) -> dict[str, Numbers]:
        """Whole numbers; the others are read with their record."""
        return {
            wanted.field.name: self._feature(wanted.features[0])[:, 4]
            for wanted in self.layout.wanted
            if wanted.field.kind == "number" and self._are_whole_numbers(wanted)
        }

    def _are_whole_numbers(self, wanted: Wanted) -> bool:
        feature = self._feature(wanted.features[0])
        return wanted.field.dtype == "int64" and bool(((feature[:, 0] == INTEGERS) & (feature[:, 3] == 1)).all())

    def _classes(self, label: Wanted) -> Iterator[Stored]:
        number, text = label.features
        numbers = self._whole(number) if number else [None] * len(self.places)
        texts = self._texts(text) if text else [None] * len(self.places)
        return zip(numbers, texts, strict=True)

    def _whole(self, name: str) -> list[int | None]:
        feature = self._feature(name)
        is_there = (feature[:, 0] == INTEGERS) & (feature[:, 3] > 0)
        return [
            first if there else None for first, there in zip(feature[:, 4].tolist(), is_there.tolist(), strict=True)
        ]

    def _texts(self, name: str) -> list[str | None]:
        return [
            bytes(self.data[offset : offset + size]).decode("utf-8", "replace") if kind == BYTES and count else None
            for kind, offset, size, count, _ in self._feature(name).tolist()
        ]

    def _box_classes(self, wanted: Wanted) -> Iterator[Stored]:
        boxes = self.layout.of_kind("boxes")
        for payload, is_example in zip(self.places.tolist(), self.is_example.tolist(), strict=True):
            if not is_example or boxes is None:
                continue
            record = Record(self.data, tuple(payload), self.layout)
            try:
                yield from stored_box_classes(wanted, record, len(record.numbers(boxes.features[0])))
            except tfrecord.UnreadableRecord:  # told when it is read
                continue

    def _keys(self, default: str) -> list[str]:
        named = self._texts(self.layout.key) if self.layout.key else [None] * len(self.places)
        return [key or f"{default}#{row}" for row, key in enumerate(named)]

    def _groups(self, keys: list[str]) -> list[str]:
        if not self.layout.group:
            return []
        return [group or key for group, key in zip(self._texts(self.layout.group), keys, strict=True)]


def make_index(originals: list[FileState], files: MappedFiles, options: RecordOptions) -> Index:
    """Scan all files, and look into every record."""
    places = scan_files(files)
    counts = [len(of_file) for of_file in places]
    problems = [
        Problem(state.path, None, "holds no record", "Leave it out", warning=True)
        for state, count in zip(originals, counts, strict=True)
        if not count
    ]
    if not sum(counts):
        raise DataError([Problem(one.file, None, "is empty: it holds no record", "Make it anew") for one in problems])
    layout = layout_of(first_examples(files, places), options.given)
    looked = [
        FileLook(files[number].data, of_file, layout).look(Path(originals[number].path).name)
        for number, of_file in enumerate(places)
    ]
    classes = options.classes_of([pair for one in looked for pair in {*one.classes, *one.box_classes}], layout)
    problems += _unknown_classes(classes, originals[0].path)
    joined = np.concatenate(places)
    columns = {
        FILE: np.repeat(np.arange(len(places), dtype=np.int64), counts),
        OFFSET: np.ascontiguousarray(joined[:, 0]),
        LENGTH: np.ascontiguousarray(joined[:, 1]),
        **_joined_columns(looked, layout, classes),
        **joined_texts("key", [key for one in looked for key in one.keys]),
        **(joined_texts("group", [group for one in looked for group in one.groups]) if layout.group else {}),
    }
    about = {
        "layout": layout_as_dict(layout),
        "classes": classes.as_dict(),
        "problems": [problem.as_dict() for problem in problems],
    }
    return Index(columns, about)


def _unknown_classes(classes: ClassNumbers, path: str) -> list[Problem]:
    return [
        Problem(path, None, f"class {name!r} occurs, and is none of {', '.join(classes.names)}", "Add it to classes")
        for name in classes.unknown
    ]


def _joined_columns(looked: list[Looked], layout: Layout, classes: ClassNumbers) -> dict[str, Any]:
    shared = set.intersection(*(set(one.columns) for one in looked))
    columns = {name: np.ascontiguousarray(np.concatenate([one.columns[name] for one in looked])) for name in shared}
    label = layout.of_kind("class")
    if label is not None:
        numbers = {pair: classes.number(pair) for pair in {pair for one in looked for pair in one.classes}}
        columns[label.field.name] = np.array([numbers[pair] for one in looked for pair in one.classes], np.int64)
    return columns
