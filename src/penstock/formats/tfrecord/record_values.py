"""One record's features as values of fields."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.images import decode_image, decode_mask
from penstock.formats.indexed.class_numbers import ClassNumbers, Stored
from penstock.formats.reading import ONLY_CLASS
from penstock.formats.tfrecord.example_fields import Layout, Wanted
from penstock.formats.tfrecord.example_reading import KIND_NAMES, Place, Values, find_features, values_at
from penstock.formats.tfrecord.framing import UnreadableRecord
from penstock.samples import Sample
from penstock.wording import counted

Size = tuple[int, int]


class Record:
    """A payload in memory, and what was found in it."""

    def __init__(self, view: memoryview, payload: tuple[int, int], layout: Layout) -> None:
        self.view, self.payload, self.layout = view, payload, layout
        found, is_example = find_features(view, np.array([payload], np.int64), layout.features)
        if not is_example[0]:
            raise UnreadableRecord("it is not a tf.train.Example")
        self._places = dict(zip(layout.features, (Place(*row) for row in found[0].tolist()), strict=True))

    def values(self, feature: str) -> Values:
        """All values of a feature; none where it is absent."""
        if not feature or not self._places[feature].count:
            return []
        return values_at(self.view, self.payload, feature, self._places[feature])

    def numbers(self, feature: str) -> NDArray[Any]:
        values = self.values(feature)
        if isinstance(values, np.ndarray):
            return values
        if values:
            raise UnreadableRecord(f"its feature {feature!r} holds bytes, and numbers are expected")
        return np.zeros(0, np.float32)

    def content(self, feature: str) -> memoryview:
        """The one bytes value of a feature, as a view."""
        place = self._places[feature]
        if place.count != 1 or KIND_NAMES[place.kind] != "bytes":
            what = f"{counted(place.count, 'value')}, {KIND_NAMES[place.kind]}" if place.count else "no value"
            raise UnreadableRecord(f"its feature {feature!r} has {what}, and the bytes of one are expected")
        return self.view[place.offset : place.offset + place.size]

    def texts(self, feature: str) -> list[str]:
        values = self.values(feature)
        return [value.decode("utf-8", "replace") for value in values if isinstance(value, bytes)]


class Reading(NamedTuple):
    """What is needed to read a record: the classes, and whether boxes are parts of the image's size."""

    layout: Layout
    classes: ClassNumbers
    normalised: bool

    def fields(self, record: Record, size: Size) -> Sample:
        """Every field but images and masks."""
        return {
            wanted.field.name: self._value(wanted, record, size)
            for wanted in self.layout.wanted
            if wanted.field.kind not in ("image", "mask")
        }

    def _value(self, wanted: Wanted, record: Record, size: Size) -> Any:
        kind = wanted.field.kind
        if kind == "class":
            return self.classes.number(stored_class(wanted, record))
        if kind == "boxes":
            return _boxes(wanted, record, size if self.normalised else None)
        if len(wanted.features) == 2:
            pairs = stored_box_classes(wanted, record, self._box_count(record))
            return np.array([self.classes.number(pair) for pair in pairs], np.int64)
        if kind == "text":
            return next(iter(record.texts(wanted.features[0])), "")
        return _numbers(wanted, record)

    def _box_count(self, record: Record) -> int:
        boxes = self.layout.of_kind("boxes")
        return 0 if boxes is None else len(record.numbers(boxes.features[0]))


def stored_class(wanted: Wanted, record: Record) -> Stored:
    """The class of a record as it is stored: a number, a name, or both."""
    number, text = wanted.features
    numbers, texts = record.numbers(number), record.texts(text)
    return (int(numbers[0]) if len(numbers) else None, texts[0] if texts else None)


def stored_box_classes(wanted: Wanted, record: Record, box_count: int) -> list[Stored]:
    """The classes of the boxes; where no file has any, all are of one class."""
    number, text = wanted.features
    if not number and not text:
        return [(None, ONLY_CLASS)] * box_count
    numbers: list[int | None] = record.numbers(number).tolist() if number else []
    texts: list[str | None] = [*record.texts(text)]
    count = len(numbers or texts)
    if count != box_count or (numbers and texts and len(texts) != count):
        raise UnreadableRecord(f"it has {counted(box_count, 'box')} and {counted(count, 'class')} of boxes")
    nothing: list[None] = [None] * box_count
    return list(zip(numbers or nothing, texts or nothing, strict=True))


def _boxes(wanted: Wanted, record: Record, size: Size | None) -> NDArray[np.float32]:
    sides = [record.numbers(feature).astype(np.float64) for feature in wanted.features]
    if len({len(side) for side in sides}) > 1:
        counts = ", ".join(f"{len(side)} of {name}" for side, name in zip(sides, wanted.features, strict=True))
        raise UnreadableRecord(f"its boxes have {counts}")
    boxes = np.stack(sides, axis=1)
    return boxes.astype(np.float32) if size is None else _in_pixels(boxes, size)


def _in_pixels(boxes: NDArray[np.float64], size: Size) -> NDArray[np.float32]:
    """Parts of the image's size as pixels.

    Division rounded the stored number to float32. What lies that near to a whole 256th of a pixel was one.
    """
    found = boxes * np.array([*size, *size], np.float64)
    exact = np.round(found * 256) / 256
    return np.where(np.abs(found - exact) <= np.abs(found) * 2.0**-23, exact, found).astype(np.float32)


def _numbers(wanted: Wanted, record: Record) -> Any:
    """A number, or an array: a list of numbers, or the bytes of a tensor."""
    field, feature = wanted.field, wanted.features[0]
    dtype = np.dtype(field.dtype or "int64")
    values = record.values(feature)
    if isinstance(values, list) and values:
        values = _tensor(record.content(feature), dtype, feature)
    array = np.asarray(values).astype(dtype)
    if field.kind == "number":
        if len(array) != 1:
            raise UnreadableRecord(f"its feature {feature!r} has {counted(len(array), 'value')}, and one is expected")
        return array[0]
    return array if field.shape is None else _shaped(array, field.shape, feature)


def _tensor(content: memoryview, dtype: np.dtype[Any], feature: str) -> NDArray[Any]:
    if len(content) % dtype.itemsize:
        raise UnreadableRecord(f"its feature {feature!r} has {len(content):,} bytes, which is no array of {dtype}")
    return np.frombuffer(content, dtype.newbyteorder("<"))


def _shaped(array: NDArray[Any], shape: tuple[int | None, ...], feature: str) -> NDArray[Any]:
    fixed = int(np.prod([side for side in shape if side is not None]))
    free = shape.count(None)
    if free > 1 or len(array) % fixed or (not free and len(array) != fixed):
        raise UnreadableRecord(
            f"its feature {feature!r} has {counted(len(array), 'value')}, which do not fit the shape {shape}"
        )
    return array.reshape([-1 if side is None else side for side in shape])


def pixels_of(wanted: Wanted, content: memoryview) -> NDArray[Any]:
    """The pixels of an image or mask, from its bytes."""
    if wanted.field.kind == "mask":
        return decode_mask(content)
    if wanted.pixels is None:
        return decode_image(content)
    height, width, channels = wanted.pixels
    if len(content) != height * width * channels:
        needed = height * width * channels
        raise UnreadableRecord(
            f"its pixels have {len(content):,} bytes, and {height}×{width}×{channels} are {needed:,}"
        )
    pixels = np.frombuffer(content, np.uint8).reshape(wanted.pixels)
    return np.repeat(pixels, 3, axis=2) if channels == 1 else pixels
