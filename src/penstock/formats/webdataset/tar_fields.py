"""Which files of a sample become which fields: by their endings, or as the user says.

| ending                         | becomes                                                                    |
|--------------------------------|----------------------------------------------------------------------------|
| jpg jpeg png webp bmp gif tiff | image, whichever of them a sample has                                      |
| cls                            | label: a number, or a name                                                 |
| txt                            | text                                                                       |
| json                           | label (label, class, category), boxes and box_label (boxes in pixels, x1   |
|                                | y1 x2 y2), labels (one for each class), key and group                      |
| npy                            | array                                                                      |
| NAME.npy, NAME.png, NAME.txt   | a field called NAME: an array; a mask (one channel) or an image; a text    |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.headers import UnreadableImage, read_header
from penstock.codecs.npy import load_npy
from penstock.errors import OptionError, nearest
from penstock.samples import RESERVED, Field
from penstock.storage.documents import load_json

Files = Mapping[str, bytes]  # contents by ending
Given = Mapping[str, "str | Field"]

IMAGES = ("jpg", "jpeg", "png", "webp", "bmp", "gif", "tif", "tiff")
JSON_LABELS = ("label", "class", "cls", "category", "class_id")
JSON_BOX_LABELS = ("box_label", "box_labels", "labels", "classes", "categories")


class UnreadableMember(UnreadableImage):
    """A file of a sample does not hold what its ending says; the text is the short reason."""


@dataclass(frozen=True)
class Wanted:
    """One field, the endings of the file it is in (one of them), and for JSON the names that lead to the value."""

    field: Field
    endings: tuple[str, ...]
    inside: tuple[str, ...] = ()


def recognised(first: Sequence[Files]) -> list[Wanted]:
    """The fields of the first samples by their endings."""
    there: dict[str, bytes] = {}
    for files in first:
        there.update({ending: data for ending, data in files.items() if ending not in there})
    wanted: list[Wanted] = []
    if any(ending in there for ending in IMAGES):
        wanted.append(Wanted(Field("image", "image"), IMAGES))
    if "cls" in there:
        wanted.append(Wanted(Field("label", "class"), ("cls",)))
    if "json" in there:
        wanted += _in_json(json_of(there["json"]), has_label="cls" in there)
    return wanted + [_named(ending, data) for ending, data in sorted(there.items()) if _has_a_rule(ending)]


def _has_a_rule(ending: str) -> bool:
    name, _, last = ending.rpartition(".")
    return last in ("npy", "txt") or (bool(name) and name not in RESERVED and last in IMAGES)


def _named(ending: str, data: bytes) -> Wanted:
    name, _, last = ending.rpartition(".")
    if last == "txt":
        return Wanted(Field(name or "text", "text"), (ending,))
    if last == "npy":
        array = array_of(data)
        return Wanted(Field(name or "array", "array", str(array.dtype), (None,) * array.ndim), (ending,))
    return Wanted(Field(name, "mask" if read_header(data).channels == 1 else "image"), (ending,))


def _in_json(value: Any, *, has_label: bool) -> list[Wanted]:
    if not isinstance(value, dict):
        return []
    wanted = []
    label = next((name for name in JSON_LABELS if _is_class(value.get(name))), None)
    if label is not None and not has_label:
        wanted.append(Wanted(Field("label", "class"), ("json",), (label,)))
    if isinstance(value.get("boxes"), list):
        named = next((name for name in JSON_BOX_LABELS if isinstance(value.get(name), list)), "")
        wanted.append(Wanted(Field("boxes", "boxes"), ("json",), ("boxes",)))
        wanted.append(Wanted(Field("box_label", "labels", "int64"), ("json",), (named,)))
    elif _is_vector(value.get("labels")):
        wanted.append(Wanted(Field("labels", "labels", "int64"), ("json",), ("labels",)))
    return wanted


def _is_class(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _is_vector(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, int) for one in value)


# As the user says


def given(fields: Given, first: Sequence[Files]) -> list[Wanted]:
    """Fields by the endings that the user names: "jpg;png", "json:path.to.value", or a Field of such a name."""
    return [_given(name, one, first) for name, one in fields.items()]


def _given(name: str, one: Any, first: Sequence[Files]) -> Wanted:
    stated = one.name if isinstance(one, Field) else one
    if not isinstance(stated, str):
        raise OptionError(f'fields[{name!r}]={one!r}: write an ending such as "jpg", "json:label", or a ps.Field.')
    where, _, path = stated.partition(":")
    endings = tuple(ending.strip().lower().removeprefix(".") for ending in where.split(";"))
    inside = tuple(path.split(".")) if path else ()
    data = next((files[ending] for files in first for ending in endings if ending in files), None)
    if data is None:
        there = sorted({ending for files in first for ending in files})
        raise OptionError(
            f"fields[{name!r}]={stated!r}: the first samples have no such file. There are {', '.join(there)}."
            f"{nearest(endings[0], there)}"
        )
    if isinstance(one, Field):
        return Wanted(Field(name, one.kind, one.dtype, one.shape), endings, inside)
    return Wanted(_inferred(name, endings, inside, data), endings, inside)


def _inferred(name: str, endings: tuple[str, ...], inside: tuple[str, ...], data: bytes) -> Field:
    last = endings[0].rpartition(".")[2]
    if name == "label" or last == "cls":
        return Field(name, "class")
    if name == "box_label":
        return Field(name, "labels", "int64")
    if last in IMAGES:
        return Field(name, "image")
    if last == "npy":
        array = array_of(data)
        return Field(name, "array", str(array.dtype), (None,) * array.ndim)
    if not inside:
        return Field(name, "text")
    return _inferred_value(name, found_in(json_of(data), inside))


def _inferred_value(name: str, value: Any) -> Field:
    if name == "boxes":
        return Field(name, "boxes")
    if isinstance(value, str):
        return Field(name, "text")
    if isinstance(value, bool | int | float):
        return Field(name, "number", "float64" if isinstance(value, float) else "int64")
    array = np.asarray(value)
    if array.dtype.kind in "biuf" and array.ndim:
        return Field(name, "array", str(array.dtype), (None,) * array.ndim)
    raise OptionError(f"fields[{name!r}]: {value!r} is neither a number, a list of them nor a text.")


# Contents


def json_of(data: bytes) -> Any:
    try:
        return load_json(data)
    except ValueError as error:
        raise UnreadableMember(f"its JSON cannot be read: {error}") from error


def found_in(value: Any, inside: Sequence[str]) -> Any:
    """A value inside JSON, by the names that lead to it."""
    for name in inside:
        if not isinstance(value, dict) or name not in value:
            raise UnreadableMember(f"its JSON has no {'.'.join(inside)!r}")
        value = value[name]
    return value


def array_of(data: bytes) -> NDArray[Any]:
    try:
        return load_npy(data)
    except ValueError as error:
        raise UnreadableMember(f"its npy file cannot be read (nothing pickled is): {error}") from error
