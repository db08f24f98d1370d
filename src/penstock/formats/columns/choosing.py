"""Which column is the image, the label, the boxes; what becomes of the others; and why some are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from penstock.codecs.headers import UnreadableImage, read_header
from penstock.errors import DataError, OptionError, Problem, nearest
from penstock.formats.columns.options import ColumnOptions
from penstock.formats.columns.pixel_shapes import pixel_order
from penstock.formats.columns.tables import Holds, Table
from penstock.samples import RESERVED, Field
from penstock.wording import counted

# In the order in which they are looked for, in small letters.
IMAGE_NAMES = (
    *("image", "images", "img", "x", "frame", "frames", "picture", "photo", "pixels", "pixel_values", "data"),
    *("jpg", "jpeg", "png", "webp", "image_bytes", "image/encoded", "set_x"),
)
LABEL_NAMES = (
    *("label", "labels", "y", "target", "targets", "class", "class_id", "category", "cls", "fine_label"),
    *("label-fine", "set_y"),
)
BOX_NAMES = ("boxes", "bboxes", "bbox", "objects.bbox", "objects.boxes")
BOX_LABEL_NAMES = (
    *("box_label", "box_labels", "objects.category", "objects.label", "objects.categories"),
    *("objects.labels", "categories"),
)
CLASS_LIST_NAMES = ("classes", "class_names", "label_names", "list_classes", "categories")
KEY_NAMES = ("key", "__key__")

How = Literal["encoded", "pixels", "class", "labels", "boxes", "number", "text", "array"]


@dataclass(frozen=True)
class Taken:
    """A column that became a field, and how its values do."""

    field: Field
    column: str
    how: How
    holds: Holds


@dataclass(frozen=True)
class Choice:
    """All columns of a source: what was taken, and why the others were not. `key`, `group`, `split` are columns."""

    taken: tuple[Taken, ...]
    left_out: dict[str, str] = field(default_factory=dict)
    key: str | None = None
    group: str | None = None
    split: str | None = None

    def __getitem__(self, name: str) -> Taken:
        return next(one for one in self.taken if one.field.name == name)

    @property
    def image(self) -> Taken | None:
        """The image that a pack stores as its payload: the first one."""
        return next((one for one in self.taken if one.field.kind == "image"), None)

    @property
    def label(self) -> Taken | None:
        return next((one for one in self.taken if one.how == "class" and one.field.kind == "class"), None)


def choose(table: Table, options: ColumnOptions) -> Choice:
    """Decide by what the user said, then by what the file says of itself, then by names and what columns hold."""
    given = options.given_columns
    _check_given(table, {**given, "group_from": options.group_from, "split_from": options.split_from})
    roles = _roles(table, given)
    places = _places(table, options, set(roles.values()))
    taken = [_taken(name, column, table, options) for name, column in roles.items()]
    used = {*roles.values(), *(column for column in places.values() if column is not None)}
    left_out = {
        name: f"it has {counted(length, 'row')}, and there are {counted(table.length, 'sample')}"
        for name, length in table.lengths.items()
        if not is_class_list(name, table.aside[name].holds)
    }
    for name in (name for name in table.columns if name not in used):
        reason = _why_not(name, table.columns[name].holds, options, {one.field.name for one in taken})
        if reason:
            left_out[name] = reason
        else:
            taken.append(_plain(_field_name(name), name, table.columns[name].holds))
    if not taken:
        there = "; ".join(f"{name}: {reason}" for name, reason in left_out.items()) or "there are no columns"
        raise _unusable(table, f"no column can be a field ({there})", "Name the columns, such as image=… and label=…")
    return Choice(tuple(taken), left_out, **places)


def is_class_list(name: str, holds: Holds) -> bool:
    """Whether an array beside the columns has the names of the classes."""
    return name.lower() in CLASS_LIST_NAMES and holds.what == "text"


def _check_given(table: Table, given: Mapping[str, str | None]) -> None:
    there = [*table.columns]
    for option, column in given.items():
        if column and column not in table.columns:
            known = f"there are {', '.join(there)}" if there else "there are none"
            raise DataError(
                [
                    Problem(
                        table.where,
                        None,
                        f"there is no column {column!r} for {option}; {known}",
                        nearest(column, there).strip() or "Name one of these",
                    )
                ]
            )


def _roles(table: Table, given: Mapping[str, str]) -> dict[str, str]:
    """Field → column for the four that Penstock knows, and for what the user named."""
    roles = {name: column for name, column in given.items() if column}
    if "image" not in given:
        image = _image_column(table, set(roles.values()))
        if image is not None:
            roles = {"image": image, **roles}
    for name, names in (("label", LABEL_NAMES), ("boxes", BOX_NAMES), ("box_label", BOX_LABEL_NAMES)):
        found = _named(table, names, set(roles.values()))
        if name not in given and found is not None and _can_be(name, table.columns[found].holds):
            roles[name] = found
    if "box_label" in roles and "boxes" not in roles:
        del roles["box_label"]
    return roles


def _named(table: Table, names: Sequence[str], used: set[str]) -> str | None:
    small = {name.lower(): name for name in reversed(list(table.columns)) if name not in used}
    return next((small[name] for name in names if name in small), None)


def _can_be(role: str, holds: Holds) -> bool:
    if role == "label":
        return holds.what == "text" or (holds.what == "array" and len(holds.shape) < 2 and None not in holds.shape)
    if role == "boxes":
        return holds.what == "array" and len(holds.shape) == 2 and holds.shape[1] in (4, None)
    return holds.what == "array" and len(holds.shape) == 1


def _image_column(table: Table, used: set[str]) -> str | None:
    said = [name for name, column in table.columns.items() if column.holds.is_image and name not in used]
    if len(said) == 1:
        return said[0]
    candidates = said or [name for name in table.columns if name not in used and _looks_like_image(table, name)]
    by_name = _named(table, IMAGE_NAMES, set(table.columns) - set(candidates))
    if by_name is not None or len(candidates) < 2:
        return by_name or (candidates[0] if candidates and _is_sure(table, candidates[0]) else None)
    if said or all(_is_sure(table, name) for name in candidates):
        raise OptionError(f"{table.where} has several columns of images: {', '.join(candidates)}. Say which: image=…")
    return None


def _looks_like_image(table: Table, name: str) -> bool:
    holds = table.columns[name].holds
    if holds.what == "bytes":
        return _begins_like_image(table, name) == ""
    return holds.what == "array" and len(holds.shape) in (2, 3) and name.lower() not in BOX_NAMES


def _is_sure(table: Table, name: str) -> bool:
    """Whether a column of no telling name is an image by what it holds: encoded, or pixels with channels."""
    holds = table.columns[name].holds
    return holds.what == "bytes" or (holds.dtype == "uint8" and len(holds.shape) == 3)


def _begins_like_image(table: Table, name: str) -> str:
    """Why the first row is not an encoded image; empty when it is."""
    if not table.length:
        return ""
    try:
        read_header(table.columns[name].value(0))
    except (UnreadableImage, ValueError) as error:
        return str(error)
    return ""


def _places(table: Table, options: ColumnOptions, used: set[str]) -> dict[str, str | None]:
    """The columns of key, group and split."""
    texts = {name for name, column in table.columns.items() if name not in used and column.holds.what == "text"}

    def named(*names: str) -> str | None:
        return next((name for name in names if name in texts), None)

    return {
        "key": named(*KEY_NAMES),
        "group": options.group_from or named("group"),
        "split": options.split_from or named("split"),
    }


def _taken(name: str, column: str, table: Table, options: ColumnOptions) -> Taken:
    """A column with a role; whether it can play it is checked here."""
    holds = table.columns[column].holds
    if holds.what == "bytes":
        reason = _begins_like_image(table, column)
        if name in ("label", "boxes", "box_label") or reason:
            why = f"column {column!r} holds bytes that are no image" + (f": {reason}" if reason else "")
            raise _unusable(table, why, "Name another column")
        stated = options.stated(name)
        is_mask = stated is not None and stated.kind == "mask"
        return Taken(Field(name, "mask" if is_mask else "image"), column, "encoded", holds)
    stated = options.stated(name)
    if stated is not None and stated.kind == "labels" and _can_be("box_label", holds):
        return Taken(Field(name, "labels", stated.dtype or holds.dtype, stated.shape), column, "labels", holds)
    if name == "label" and _can_be("label", holds):
        return _label(name, column, holds)
    if name == "boxes" and _can_be("boxes", holds):
        return Taken(Field(name, "boxes"), column, "boxes", holds)
    if name == "box_label" and _can_be("box_label", holds):
        return Taken(Field(name, "labels", "int64"), column, "labels", holds)
    if name == "image" and pixel_order(holds, options.layout) is not None:
        return Taken(Field(name, "image"), column, "pixels", holds)
    if name in ("label", "boxes", "box_label") or holds.what == "other":
        raise _unusable(table, f"column {column!r} ({holds.words}) cannot be the field {name!r}", "Name another column")
    return _plain(name, column, holds)


def _label(name: str, column: str, holds: Holds) -> Taken:
    """Whole numbers and texts are classes, vectors are labels, and a fraction is a number."""
    if holds.what == "array" and holds.shape not in ((), (1,)):
        return Taken(Field(name, "labels", holds.dtype), column, "labels", holds)
    if holds.what == "array" and holds.dtype.startswith("float"):
        return Taken(Field(name, "number", holds.dtype), column, "number", holds)
    return Taken(Field(name, "class"), column, "class", holds)


def _plain(name: str, column: str, holds: Holds) -> Taken:
    if holds.what == "text":
        return Taken(Field(name, "text"), column, "text", holds)
    if holds.shape == ():
        return Taken(Field(name, "number", holds.dtype), column, "number", holds)
    return Taken(Field(name, "array", holds.dtype, holds.shape), column, "array", holds)


def _why_not(name: str, holds: Holds, options: ColumnOptions, fields: set[str]) -> str:
    """Why a column that has no role is not taken; empty when it is."""
    if options.fields is not None:
        return "it is not among fields"
    if options.given_columns.get(_field_name(name)) == "":
        return "it was left out by the user"
    if holds.what == "other":
        return holds.note
    if holds.what == "bytes":
        return "it holds bytes that no field can hold"
    if 0 in holds.shape:
        return "it holds nothing"
    if _field_name(name) in (*RESERVED, *fields):
        return f"a field cannot be called {_field_name(name)!r} here"
    return ""


def _field_name(column: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in column)


def _unusable(table: Table, what: str, remedy: str) -> DataError:
    return DataError([Problem(table.where, None, what, remedy)])
