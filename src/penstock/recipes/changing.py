"""Other values for keys of a recipe, in the text that its author wrote: comments and all other lines stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from penstock.recipes.given import composed, is_empty
from penstock.runs.layout import yaml_text
from penstock.storage.plain_files import read_text
from penstock.storage.whole_files import write_whole

KEPT_SUFFIX = ".before"
INDENT = "  "
FEWEST_SPACES = 2  # before a comment


def change_recipe(file: Path, section: str, values: dict[str, Any]) -> Path:
    """Write other values into a recipe; what it was before is kept beside it, under the path that is returned."""
    text = read_text(file)
    kept = file.with_name(file.name + KEPT_SUFFIX)
    write_whole(kept, text)
    write_whole(file, changed_text(text, section, values))
    return kept


def changed_text(text: str, section: str, values: dict[str, Any]) -> str:
    """The same recipe with other values in one section."""
    for key, value in values.items():
        text = _changed(text, section, key, yaml_text(value).removesuffix("...\n").strip())
    return text


def _changed(text: str, section: str, key: str, value: str) -> str:
    node = _value_of(composed(text), section)
    if node is None:
        end = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{end}{section}:\n{INDENT}{key}: {value}\n"
    if is_empty(node):  # the name of a section with nothing below it
        return _replaced(text, node, f"\n{INDENT}{key}: {value}")
    there = _value_of(node, key)
    if there is not None:
        return _replaced(text, there, value if there.start_mark.index < there.end_mark.index else f" {value}")
    first = node.start_mark
    if node.flow_style:
        comma = ", " if node.value else ""
        return f"{text[: first.index + 1]}{key}: {value}{comma}{text[first.index + 1 :]}"
    return f"{text[: first.index]}{key}: {value}\n{' ' * first.column}{text[first.index :]}"


def _value_of(node: yaml.Node | None, key: str) -> Any:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for name, value in node.value if name.value == key), None)


def _replaced(text: str, node: yaml.Node, value: str) -> str:
    """A comment behind the value stays in its column, where there is room."""
    before, after = text[: node.start_mark.index], text[node.end_mark.index :]
    room = len(after) - len(after.lstrip(" "))
    left = room + node.end_mark.index - node.start_mark.index - len(value)
    if after[room:].startswith("#") and left >= FEWEST_SPACES:
        after = " " * left + after[room:]
    return before + value + after
