"""Which keys a recipe has, and their types: looked up from the dataclasses that Python users pass."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any, get_type_hints

from penstock.runs.layout import CHOSEN, MODEL_KEYS
from penstock.tasks.kinds import HOMES, task_class
from penstock.training.options import DataOptions, FeedOptions, RunOptions, TrainOptions

KIND = "kind"
OPTIONS: dict[str, type[Any]] = {"data": DataOptions, "train": TrainOptions, "feed": FeedOptions, "run": RunOptions}
SECTIONS = ("data", "task", "model", "train", "feed", "run")
# What a Run adds to the recipe that it writes; it says what happened, and asks for nothing.
IGNORED = (CHOSEN,)


@dataclass(frozen=True)
class Key:
    """A key that a recipe may have."""

    section: str
    name: str
    hint: Any
    default: Any  # dataclasses.MISSING where there is none

    @property
    def path(self) -> tuple[str, str]:
        return self.section, self.name


@functools.cache
def legal_keys(kind: str) -> dict[tuple[str, ...], Key]:
    """Every key of a recipe for a kind of task, in the order of the sections."""
    keys = [Key("task", KIND, str, dataclasses.MISSING)]
    for section, options in OPTIONS.items():
        keys += [Key(section, field.name, hint, field.default) for field, hint in typed_fields(options)]
    for field, hint in typed_fields(task_class(kind)):
        keys.append(Key("model" if field.name in MODEL_KEYS else "task", field.name, hint, _default(field)))
    return {key.path: key for key in sorted(keys, key=lambda key: SECTIONS.index(key.section))}


def typed_fields(options: type[Any]) -> list[tuple[dataclasses.Field[Any], Any]]:
    """The fields of a dataclass that a user may pass, each with its type."""
    hints = get_type_hints(options)
    return [(field, hints[field.name]) for field in dataclasses.fields(options) if field.init]


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default_factory() if callable(field.default_factory) else field.default


def task_kinds() -> tuple[str, ...]:
    """The kinds of tasks that a recipe may name."""
    return tuple(HOMES)
