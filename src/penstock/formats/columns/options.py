"""What a user may say about columns; the same words for every format that has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from penstock.errors import OptionError, nearest, one_of
from penstock.formats.paths import PathLike
from penstock.formats.reading import parse_classes
from penstock.samples import Field

LAYOUTS = ("auto", "hwc", "chw")
BOX_FORMATS = ("auto", "xyxy", "xywh")
CHANNELS = ("auto", "rgb", "bgr")


@dataclass(frozen=True)
class ColumnOptions:
    """Which column is which field. Whatever is not said is recognised by its name and by what it holds; "" is none.

    image       column of the images              label      column of the classes
    boxes       column of the boxes               box_label  column of the classes of the boxes
    fields      {field: column}: the other fields, none for {}; by default every column that a field can hold; instead
                of a column, a ps.Field of its name says that it holds labels or a mask: ps.Field("tags", "labels")
    classes     names in their order, as a list, "A,B" or a file with one name per line
    group_from  column of what must stay in one split; by default each sample is its own group
    split_from  column that names the split; by default what the files say
    layout      of pixels: "hwc", "chw"; "auto": channels are the last axis that has 1, 3 or 4, else the first one
    box_format  "xyxy", "xywh"; "auto": x y width height in columns called `bbox`, as COCO has them, else x1 y1 x2 y2
    channels    order of colours: "rgb", "bgr"; "auto": rgb, except in frame files of DeepEthogram
    """

    image: str | None = None
    label: str | None = None
    boxes: str | None = None
    box_label: str | None = None
    fields: Mapping[str, str | Field] | None = None
    classes: PathLike | Sequence[str] | None = None
    group_from: str | None = None
    split_from: str | None = None
    layout: str = "auto"
    box_format: str = "auto"
    channels: str = "auto"

    def __post_init__(self) -> None:
        one_of("layout", self.layout, LAYOUTS)
        one_of("box_format", self.box_format, BOX_FORMATS)
        one_of("channels", self.channels, CHANNELS)
        if self.fields is not None and not isinstance(self.fields, Mapping):
            raise OptionError(
                f"fields={self.fields!r} must say the column of each field, such as {{'age': 'age_years'}}."
            )
        parse_classes(self.classes)

    @property
    def class_names(self) -> tuple[str, ...] | None:
        return parse_classes(self.classes)

    def stated(self, name: str) -> Field | None:
        """The field as the user described it, if it was more than a column."""
        one = (self.fields or {}).get(name)
        return one if isinstance(one, Field) else None

    @property
    def given_columns(self) -> dict[str, str]:
        """Field → column, as far as the user said it; `fields` may name the four known ones too."""
        known = {name: getattr(self, name) for name in ("image", "label", "boxes", "box_label")}
        named = {name: one.name if isinstance(one, Field) else one for name, one in (self.fields or {}).items()}
        return {**named, **{name: column for name, column in known.items() if column is not None}}


def column_options(kind: str, given: Mapping[str, Any]) -> ColumnOptions:
    """Options from keywords; an unknown one is an error that names the nearest."""
    legal = [field.name for field in fields(ColumnOptions)]
    for name in given:
        if name not in legal:
            raise OptionError(f"{kind} has no option {name!r}.{nearest(name, legal)} Options: {', '.join(legal)}.")
    return ColumnOptions(**given)
