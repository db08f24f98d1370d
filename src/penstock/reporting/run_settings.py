"""The settings of a Run beside their defaults."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.reporting.stories import Story
from penstock.reporting.wording import value_text, without_folders
from penstock.runs.layout import MODEL_KEYS, plain
from penstock.tasks.kinds import HOMES, task_class
from penstock.training.options import AUTO, DataOptions, FeedOptions, RunOptions, TrainOptions

OPTIONS = {"data": DataOptions, "train": TrainOptions, "feed": FeedOptions, "run": RunOptions}
Path = tuple[str, str]  # section and key


@dataclass(frozen=True)
class Setting:
    """One key of a recipe, what it was, and what it would have been."""

    path: Path
    value: Any
    default: str | None  # as a recipe writes it; None where nobody knows
    chosen: Any = None  # what auto became

    @property
    def text(self) -> str:
        written = without_folders(value_text(self.value))
        return written if self.chosen is None else f"{written} → {value_text(self.chosen)}"

    @property
    def is_default(self) -> bool:
        return value_text(self.value) == self.default


def run_settings(story: Story) -> list[Setting]:
    """All settings of a Run, in the order of its file."""
    defaults = _defaults(story.settings.get("task", {}).get("kind"))
    return [
        Setting((section, str(key)), value, defaults.get((section, key)), _chosen(story, section, key, value))
        for section, keys in story.settings.items()
        for key, value in keys.items()
    ]


def _chosen(story: Story, section: str, key: str, value: Any) -> Any:
    return story.chosen.get(section, {}).get(key) if value == AUTO else None


def further_choices(story: Story) -> dict[str, Any]:
    """What Penstock decided beside keys that were auto."""
    told = {setting.path for setting in run_settings(story) if setting.chosen is not None}
    return {
        f"{section}.{key}": value
        for section, keys in story.chosen.items()
        for key, value in keys.items()
        if (section, key) not in told and value != story.settings.get(section, {}).get(key)
    }


def _defaults(kind: Any) -> dict[Path, str]:
    found = {(section, name): text for section, options in OPTIONS.items() for name, text in _fields(options)}
    if kind in HOMES:
        names = _fields(task_class(kind))
        found |= {("model" if name in MODEL_KEYS else "task", name): text for name, text in names}
    return found


def _fields(options: Any) -> Iterator[tuple[str, str]]:
    for field in dataclasses.fields(options):
        if field.default is not dataclasses.MISSING:
            yield field.name, value_text(plain(field.default))
