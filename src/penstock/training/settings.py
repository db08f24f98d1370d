"""All options of a training together, as `ps.train` takes them by name and a Run writes them by section."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Protocol

from penstock.errors import RecipeError, nearest
from penstock.runs.layout import recipe_sections
from penstock.training.options import DataOptions, FeedOptions, RunOptions, TrainOptions

SECTIONS: dict[str, Any] = {"data": DataOptions, "train": TrainOptions, "feed": FeedOptions, "run": RunOptions}
# What may differ when a Run is gone on with: it changes how fast it goes, where, and what is shown.
MAY_DIFFER = {
    "data": ("path", "options"),  # the fingerprint of the data is compared when its flow is restored
    "train": ("devices", "nodes", "strategy", "accelerator", "compile"),
}
COMPARED = ("data", "task", "model", "train")


class Described(Protocol):
    """What settings need to know of a task, also of one that is trained in stages."""

    kind: ClassVar[str]

    def settings(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Settings:
    """The options of every section."""

    data: DataOptions = field(default_factory=DataOptions)
    train: TrainOptions = field(default_factory=TrainOptions)
    feed: FeedOptions = field(default_factory=FeedOptions)
    run: RunOptions = field(default_factory=RunOptions)

    def sections(self, task: Described) -> dict[str, dict[str, Any]]:
        """The complete recipe."""
        options = {name: getattr(self, name) for name in SECTIONS}
        sections: dict[str, dict[str, Any]] = recipe_sections(task.kind, task.settings(), **options)
        return sections


def option_names() -> dict[str, str]:
    """The options of all sections, and the section of each."""
    return {one.name: section for section, kind in SECTIONS.items() for one in fields(kind)}


def settings_of(options: Mapping[str, Any]) -> Settings:
    """Options by name, each to the section that it belongs to."""
    homes = option_names()
    unknown = [name for name in options if name not in homes]
    if unknown:
        raise RecipeError(f"there is no option {unknown[0]!r}.{nearest(unknown[0], list(homes))}")
    chosen = {
        section: kind(**{name: value for name, value in options.items() if homes[name] == section})
        for section, kind in SECTIONS.items()
    }
    return Settings(**chosen)


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The keys of two recipes that stand in the way of going on from one with the other."""
    found = []
    for section in COMPARED:
        old, new = before.get(section) or {}, now.get(section) or {}
        names = [name for name in {**old, **new} if name not in MAY_DIFFER.get(section, ())]
        found += [
            f"{section}.{name} was {old.get(name)!r}, now {new.get(name)!r}"
            for name in names
            if old.get(name) != new.get(name)
        ]
    return found
