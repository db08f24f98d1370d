"""JSON and YAML that others wrote: read here only, so that no text ends in a RecursionError or fills memory.

| text                                      | becomes                                          |
|-------------------------------------------|--------------------------------------------------|
| nested more than some hundred levels deep  | json.JSONDecodeError, yaml.YAMLError              |
| YAML tags that would make Python objects   | yaml.YAMLError                                   |
| YAML aliases                              | values, as long as all of them together are few    |
| YAML values that Python can't hold         | yaml.YAMLError                                   |

Both errors are those that readers catch anyway, and they say the line.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import yaml

# Deeper than any file that a program writes; PyYAML needs some frames of Python's stack for each level.
MOST_LEVELS = 100
# What all aliases of a text stand for; ten lines of ten aliases each would be ten thousand million values.
MOST_VALUES = 1_000_000


def load_json(text: str | bytes, object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """The value of a JSON text; json.JSONDecodeError where it is none, or is nested too deeply."""
    try:
        return json.loads(text, object_pairs_hook=object_pairs_hook)
    except RecursionError:
        raise json.JSONDecodeError("it is nested too deeply", "", 0) from None


def load_yaml(text: str | bytes) -> Any:
    """The value of a YAML text without Python objects; yaml.YAMLError where it is none, or stands for too much."""
    loader = BoundedLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if loader.has_aliases:
            _count_values(node, {})
        return loader.construct_document(node)
    except (ValueError, OverflowError, RecursionError) as error:  # a date such as 2024-13-45, a number of 5,000 digits
        raise yaml.YAMLError(f"a value cannot be read ({error})") from None
    finally:
        loader.dispose()


class BoundedLoader(yaml.SafeLoader):  # type: ignore[misc] # PyYAML has no types
    """Builds no Python objects, and stops at a text that is nested too deeply."""

    def __init__(self, text: str | bytes) -> None:
        super().__init__(text)
        self._level = 0
        self.has_aliases = False

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        self.has_aliases |= isinstance(event, yaml.AliasEvent)
        if self._level >= MOST_LEVELS:
            raise yaml.MarkedYAMLError(problem="it is nested too deeply", problem_mark=event.start_mark)
        self._level += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._level -= 1


def _count_values(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a node stands for, aliases followed; yaml.YAMLError when that is too many, or without end."""
    found = known.get(id(node))
    if found == 0:
        raise yaml.MarkedYAMLError(problem="an alias stands for itself", problem_mark=node.start_mark)
    if found is not None:
        return found
    known[id(node)] = 0
    parts = node.value if isinstance(node, yaml.CollectionNode) else ()
    inner = [part for pair in parts for part in pair] if isinstance(node, yaml.MappingNode) else parts
    count = 1 + sum(_count_values(part, known) for part in inner)
    if count > MOST_VALUES:
        what = f"its aliases stand for more than {MOST_VALUES:,} values"
        raise yaml.MarkedYAMLError(problem=what, problem_mark=node.start_mark)
    known[id(node)] = count
    return count
