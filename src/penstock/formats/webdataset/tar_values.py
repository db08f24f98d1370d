"""The files of one sample as values of fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.formats.indexed.class_numbers import ClassNumbers, Stored
from penstock.formats.reading import ONLY_CLASS
from penstock.formats.webdataset.tar_fields import UnreadableMember, Wanted, array_of, found_in, json_of
from penstock.samples import Sample
from penstock.wording import counted

Content = Callable[[Wanted], bytes]


class Values:
    """The fields of one sample; JSON is parsed once for all of them."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._parsed: dict[tuple[str, ...], Any] = {}

    def fields(self, wanted: Sequence[Wanted], classes: ClassNumbers) -> Sample:
        """Every field but images and masks."""
        found: Sample = {}
        for one in wanted:
            if one.field.kind not in ("image", "mask"):
                found[one.field.name] = self._value(one, classes)
        if "boxes" in found and "box_label" in found and len(found["boxes"]) != len(found["box_label"]):
            counts = f"{counted(len(found['boxes']), 'box')} and {counted(len(found['box_label']), 'class')} of boxes"
            raise UnreadableMember(f"it has {counts}")
        return found

    def _value(self, one: Wanted, classes: ClassNumbers) -> Any:
        if one.field.kind == "class":
            return classes.number(self.stored_class(one))
        if one.field.name == "box_label":
            return np.array([classes.number(pair) for pair in self.stored_box_classes(one)], np.int64)
        if one.field.kind == "boxes":
            return _boxes(self.inside(one))
        if one.field.kind == "text":
            return str(self.inside(one)) if one.inside else self._content(one).decode("utf-8", "replace")
        return _numbers(one, self.inside(one) if one.inside else array_of(self._content(one)))

    def inside(self, one: Wanted) -> Any:
        """The value that is meant in a JSON file."""
        if one.endings not in self._parsed:
            self._parsed[one.endings] = json_of(self._content(one))
        return found_in(self._parsed[one.endings], one.inside)

    def stored_class(self, one: Wanted) -> Stored:
        value = self.inside(one) if one.inside else self._content(one).decode("utf-8", "replace").strip()
        return _stored(value)

    def stored_box_classes(self, one: Wanted) -> list[Stored]:
        if one.inside == ("",):  # boxes without classes
            boxes = Wanted(one.field, one.endings, ("boxes",))
            return [(None, ONLY_CLASS)] * len(self.inside(boxes))
        return [_stored(value) for value in self.inside(one)]


def _stored(value: Any) -> Stored:
    """A class as it is stored: a number, also one that is written as text, or a name."""
    if isinstance(value, str) and not value.lstrip("-").isdecimal():
        return None, value
    try:
        return int(value), None
    except (TypeError, ValueError) as error:
        raise UnreadableMember(f"its class is {value!r}, which is neither a number nor a name") from error


def _boxes(value: Any) -> NDArray[np.float32]:
    try:
        return np.array(value, np.float32).reshape(-1, 4)
    except (TypeError, ValueError) as error:
        raise UnreadableMember("its boxes are not a list of four numbers each") from error


def _numbers(one: Wanted, value: Any) -> Any:
    dtype, shape = np.dtype(one.field.dtype or "int64"), one.field.shape
    try:
        array = np.asarray(value).astype(dtype)
    except (TypeError, ValueError) as error:
        raise UnreadableMember(f"its {one.field.name} is {value!r}, and {dtype} is expected") from error
    fits = shape is None or (
        len(shape) == array.ndim and all(side in (None, there) for side, there in zip(shape, array.shape, strict=True))
    )
    if not fits or (one.field.kind == "number" and array.ndim):
        raise UnreadableMember(f"its {one.field.name} has the shape {array.shape}, and {shape or ()} is expected")
    return array[()] if one.field.kind == "number" else array
