"""What formats of boxes cannot say, found in the worker so that the sample is named."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.exporting.roles import Roles
from penstock.packing.preparing import Row


@dataclass(frozen=True)
class EveryBoxHasAClass:
    """Raises where a box is not labelled."""

    roles: Roles

    def __call__(self, row: Row) -> None:
        _, labels = self.roles.boxes_of(row.values)
        if len(labels) and int(labels.min()) < 0:
            raise ValueError(f"box {int(labels.argmin())} has no class, which this format cannot say")


def class_names(roles: Roles) -> tuple[str, ...]:
    """The classes of boxes; one that is called object where boxes have none."""
    return roles.classes if roles.box_label is not None and roles.classes else ("object",)


def class_name(roles: Roles, number: int) -> str:
    names = class_names(roles)
    return names[number] if number < len(names) else str(number)


def beyond_boxes(roles: Roles) -> tuple[str, ...]:
    """The fields that a format of boxes has no place for."""
    fields = roles.others if roles.label is None else (roles.label, *roles.others)
    return tuple(field.name for field in fields)
