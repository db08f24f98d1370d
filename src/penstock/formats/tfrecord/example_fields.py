"""Which features of an Example become which fields: by their usual names, or as the user says.

| feature                                                          | becomes                                        |
|------------------------------------------------------------------|------------------------------------------------|
| image/encoded, image, img, jpg …, with the bytes of an image     | image                                          |
| image/class/label with image/class/text; label, class …          | label: numbers, or names, see class_numbers    |
| image/object/bbox/xmin ymin xmax ymax, parts of the image's size | boxes: pixels                                  |
| image/object/class/label with image/object/class/text            | box_label                                      |
| labels, several whole numbers                                    | labels: one for each class                     |
| image/filename, image/source_id, filename, key, __key__; group   | the key, the group                             |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from penstock.codecs.headers import sniff
from penstock.errors import OptionError, nearest
from penstock.formats.tfrecord.example_reading import Values
from penstock.samples import Field

Example = Mapping[str, Values]
Given = Mapping[str, "str | Sequence[str] | Field"]

IMAGES = ("image/encoded", "image", "image_raw", "img", "jpg", "jpeg", "png", "webp", "image/data", "image_bytes")
LABELS = ("image/class/label", "label", "labels", "class", "cls", "target", "y")
LABEL_TEXTS = {"image/class/label": "image/class/text", "image/object/class/label": "image/object/class/text"}
CORNERS = tuple(f"image/object/bbox/{side}" for side in ("xmin", "ymin", "xmax", "ymax"))
BOX_LABEL = "image/object/class/label"
GROUPS = ("group",)
KEYS = ("image/filename", "image/source_id", "filename", "key", "__key__")


@dataclass(frozen=True)
class Wanted:
    """One field and the features that it is made of: one; number and text of a class; the four sides of boxes."""

    field: Field
    features: tuple[str, ...]
    pixels: tuple[int, int, int] | None = None  # height, width and channels of an image that is stored as plain pixels


@dataclass(frozen=True)
class Layout:
    """What is taken from every record; `key` and `group` are the features that say so, where there are any."""

    wanted: tuple[Wanted, ...]
    key: str = ""
    group: str = ""

    @property
    def features(self) -> tuple[str, ...]:
        """Every feature that is looked for, each once."""
        names = [name for wanted in self.wanted for name in wanted.features]
        return tuple(name for name in dict.fromkeys([*names, self.key, self.group]) if name)

    def of_kind(self, *kinds: str) -> Wanted | None:
        return next((wanted for wanted in self.wanted if wanted.field.kind in kinds), None)

    @property
    def box_label(self) -> Wanted | None:
        return next((wanted for wanted in self.wanted if wanted.field.name == "box_label"), None)


def layout_as_dict(layout: Layout) -> dict[str, Any]:
    """A layout as plain values, for the index."""
    return asdict(layout)


def layout_from(plain: Mapping[str, Any]) -> Layout:
    """What `layout_as_dict` gave, also after JSON made lists of tuples."""
    return Layout(tuple(_wanted_from(one) for one in plain["wanted"]), plain["key"], plain["group"])


def _wanted_from(plain: Mapping[str, Any]) -> Wanted:
    field, shape, pixels = plain["field"], plain["field"]["shape"], plain["pixels"]
    stated = Field(field["name"], field["kind"], field["dtype"], None if shape is None else tuple(shape))
    return Wanted(stated, tuple(plain["features"]), None if pixels is None else (pixels[0], pixels[1], pixels[2]))


def layout_of(examples: Sequence[Example], given: Given | None) -> Layout:
    """The layout that the first records have, or that the user gives; OptionError names the features that there are."""
    there = _joined(examples)
    wanted = _recognised(there) if given is None else [_given(name, one, there) for name, one in given.items()]
    if not wanted:
        raise OptionError(
            f"none of the features is known by its name: {described(there)}. "
            'Say what they are, such as fields={"image": "img_bytes", "label": "y"}.'
        )
    key, group = (next((name for name in names if _is_text(there.get(name, []))), "") for names in (KEYS, GROUPS))
    return Layout(tuple(wanted), key, group)


def described(example: Example) -> str:
    """The features of an Example in words."""
    return (
        ", ".join(f"{name} ({_described_values(values)})" for name, values in sorted(example.items())) or "no feature"
    )


def _described_values(values: Values) -> str:
    if isinstance(values, np.ndarray):
        return f"{len(values)} {values.dtype}"
    return f"{len(values)} of bytes" if values else "empty"


def _joined(examples: Sequence[Example]) -> dict[str, Values]:
    """Every feature with its values in the first record that has any."""
    joined: dict[str, Values] = {}
    for example in examples:
        joined.update({name: values for name, values in example.items() if not len(joined.get(name, []))})
    return joined


# By their usual names


def _recognised(there: Example) -> list[Wanted]:
    image = next((name for name in IMAGES if _is_image(there.get(name, []))), None)
    wanted = [] if image is None else [Wanted(Field("image", "image"), (image,))]
    label = next((name for name in LABELS if _is_label(there.get(name, []))), None)
    if label is not None:
        wanted.append(_class("label", label, there))
    elif _is_text(there.get("image/class/text", [])):
        wanted.append(Wanted(Field("label", "class"), ("", "image/class/text")))
    vector = there.get("labels")
    if isinstance(vector, np.ndarray) and vector.dtype.kind == "i" and len(vector) > 1:
        wanted.append(Wanted(Field("labels", "labels", "int64"), ("labels",)))
    return wanted + _recognised_boxes(there)


def _recognised_boxes(there: Example) -> list[Wanted]:
    if not all(corner in there for corner in CORNERS):
        return []
    text = LABEL_TEXTS[BOX_LABEL]
    labels = (BOX_LABEL if BOX_LABEL in there else "", text if text in there else "")
    return [Wanted(Field("boxes", "boxes"), CORNERS), Wanted(Field("box_label", "labels", "int64"), labels)]


def _class(name: str, feature: str, there: Example) -> Wanted:
    if not isinstance(there.get(feature), np.ndarray):
        return Wanted(Field(name, "class"), ("", feature))
    text = LABEL_TEXTS.get(feature, "")
    return Wanted(Field(name, "class"), (feature, text if text in there else ""))


def _is_image(values: Values) -> bool:
    return isinstance(values, list) and len(values) == 1 and bool(sniff(values[0]))


def _is_label(values: Values) -> bool:
    if isinstance(values, np.ndarray):
        return len(values) == 1 and values.dtype.kind == "i"
    return _is_text(values)


def _is_text(values: Values) -> bool:
    if not isinstance(values, list) or len(values) != 1 or len(values[0]) > 4096 or sniff(values[0]):
        return False
    try:
        return bool(values[0].decode().isprintable())
    except UnicodeDecodeError:
        return False


# As the user says


def _given(name: str, one: Any, there: Example) -> Wanted:
    if isinstance(one, Field):
        _check_there(name, one.name, there)
        return _stated(name, one, there)
    if isinstance(one, str):
        _check_there(name, one, there)
        if name == "box_label":
            return Wanted(Field(name, "labels", "int64"), _class(name, one, there).features)
        return _class(name, one, there) if name == "label" else _inferred(name, one, there[one])
    features = tuple(one)
    if len(features) != 4 or not all(isinstance(feature, str) for feature in features):
        raise OptionError(
            f"fields[{name!r}]={one!r}: write the name of a feature, a ps.Field with that name, "
            "or for boxes the names of four: xmin, ymin, xmax, ymax."
        )
    for feature in features:
        _check_there(name, feature, there)
    return Wanted(Field(name, "boxes"), features)


def _check_there(name: str, feature: str, there: Example) -> None:
    if feature not in there:
        raise OptionError(
            f"fields[{name!r}]={feature!r}: the first records have no such feature. There are {described(there)}."
            f"{nearest(feature, list(there))}"
        )


def _stated(name: str, field: Field, there: Example) -> Wanted:
    """A Field whose name is that of the feature; the sample has it under the other name."""
    if field.kind == "boxes":
        raise OptionError(f"fields[{name!r}]: boxes are four features: (xmin, ymin, xmax, ymax).")
    if field.kind == "class":
        return _class(name, field.name, there)
    if field.kind == "image" and field.shape is not None:
        return Wanted(Field(name, "image"), (field.name,), _pixel_shape(name, field.shape))
    return Wanted(Field(name, field.kind, field.dtype, field.shape), (field.name,))


def _pixel_shape(name: str, shape: tuple[int | None, ...]) -> tuple[int, int, int]:
    height, width, channels = (*shape, 1)[:3] if len(shape) in (2, 3) else (None, None, None)
    if height is None or width is None or channels not in (1, 3):
        raise OptionError(f"fields[{name!r}]: plain pixels are H×W, H×W×1 or H×W×3, and the shape is {shape}.")
    return height, width, channels


def _inferred(name: str, feature: str, values: Values) -> Wanted:
    if isinstance(values, np.ndarray):
        kind = str(values.dtype)
        field = Field(name, "number", kind) if len(values) == 1 else Field(name, "array", kind, (None,))
        return Wanted(field, (feature,))
    if _is_image(values):
        return Wanted(Field(name, "image"), (feature,))
    if _is_text(values):
        return Wanted(Field(name, "text"), (feature,))
    raise OptionError(
        f"fields[{name!r}]={feature!r}: these bytes are neither an image nor text. For a tensor say what it is: "
        f'ps.Field({feature!r}, "array", "uint8", (28, 28, 1)).'
    )
