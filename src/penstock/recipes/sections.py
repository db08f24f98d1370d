"""Which keys a recipe has, their types, and what each is for: looked up from the dataclasses."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
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


# What each option is for, taken from the docstring of its dataclass, where it is written once.
#
# A line of such a docstring is `name   what it is for`, or `name, name   what they are for`; a deeper line goes on.


LINE = re.compile(r"(\w+(?:, \w+)*) {2,}(\S.*)")


def explanations(options: type[Any]) -> dict[str, str]:
    """The text for each field of a dataclass."""
    found: dict[str, str] = {}
    names: list[str] = []
    for line in inspect.getdoc(options).splitlines():  # type: ignore[union-attr]
        match = LINE.fullmatch(line)
        if match:
            names = match[1].split(", ")
            found.update(dict.fromkeys(names, match[2]))
        elif line.startswith("  ") and names:
            found.update({name: f"{found[name]} {line.strip()}" for name in names})
        else:
            names = []
    return found


def headline(options: type[Any]) -> str:
    """The first sentence of a docstring."""
    return (inspect.getdoc(options) or "").split("\n")[0]
