"""What each field of a sample is to other programs: the image, its class, its boxes and their classes, and the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.geometry import Boxes, as_boxes
from penstock.samples import Field, Sample, Schema
from penstock.wording import counted

BOX_LABEL = "box_label"


@dataclass(frozen=True)
class Roles:
    """The fields of a schema by what they are for."""

    classes: tuple[str, ...]
    image: Field | None
    label: Field | None
    boxes: Field | None
    box_label: Field | None
    others: tuple[Field, ...]

    @property
    def behaviours(self) -> Field | None:
        """The vector that says for each class whether a frame shows it."""
        wanted = (len(self.classes),)
        return next((field for field in self.others if field.kind == "labels" and field.shape == wanted), None)

    @property
    def is_video(self) -> bool:
        """Whether samples are the frames of videos."""
        names = {field.name for field in self.others if field.kind == "number"}
        return self.image is not None and "frame" in names

    def class_name(self, number: int) -> str:
        """The name of a class; empty for −1, the number itself where the source has no names."""
        if number < 0:
            return ""
        return self.classes[number] if number < len(self.classes) else str(number)

    def boxes_of(self, values: Sample) -> tuple[Boxes, NDArray[np.int64]]:
        """Boxes in pixels and the number of the class of each, 0 where boxes have no classes."""
        if self.boxes is None:
            return as_boxes([]), np.zeros(0, np.int64)
        boxes = as_boxes(values[self.boxes.name])
        if self.box_label is None:
            return boxes, np.zeros(len(boxes), np.int64)
        labels = np.asarray(values[self.box_label.name], np.int64).reshape(-1)
        if len(labels) != len(boxes):
            raise ValueError(f"there are {counted(len(boxes), 'box')} and {counted(len(labels), 'label')} for them")
        return boxes, labels

    def holding(self, kinds: Sequence[str]) -> tuple[Field, ...]:
        """The other fields of these kinds."""
        return tuple(field for field in self.others if field.kind in kinds)


def roles_of(schema: Schema) -> Roles:
    image, label = schema.image, schema.label
    boxes = next((field for field in schema.fields if field.kind == "boxes"), None)
    has_labels = boxes is not None and BOX_LABEL in schema and schema[BOX_LABEL].kind == "labels"
    box_label = schema[BOX_LABEL] if has_labels else None
    taken: tuple[Any, ...] = (image, label, boxes, box_label)
    others = tuple(field for field in schema.fields if field not in taken)
    return Roles(schema.classes, image, label, boxes, box_label, others)


def need_image(roles: Roles, to: str) -> None:
    if roles.image is None:
        raise OptionError(f"{to} is for images, and these samples have none. Use tfrecord, hdf5, webdataset or numpy.")


def need_boxes(roles: Roles, to: str) -> None:
    need_image(roles, to)
    if roles.boxes is None:
        raise OptionError(
            f"{to} is for boxes, and these samples have none. Use directory, which writes a table of labels."
        )
