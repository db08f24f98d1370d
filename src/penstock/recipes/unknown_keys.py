"""What to say of a key that no recipe has: the key that was probably meant, or where it belongs."""

from __future__ import annotations

from collections.abc import Collection

import yaml

from penstock.errors import Problem, nearest
from penstock.recipes.given import SYNTAX_REMEDY, Given, is_empty
from penstock.recipes.sections import SECTIONS

Legal = Collection[tuple[str, ...]]  # (section, key)


def unknown_key(given: Given, legal: Legal) -> list[Problem]:
    """What is wrong with a path that is no section.key; nothing, where it is a section with keys of its own."""
    section = given.path[0]
    if section not in SECTIONS:
        return _unknown_section(given, legal)
    if len(given.path) == 1:
        if isinstance(given.node, yaml.MappingNode) or is_empty(given.node):
            return []
        return [given.place.problem(f"section {section} has no keys", SYNTAX_REMEDY)]
    return [given.place.problem(f"{given.name} is not a key", _meant_in(section, given.path[1], legal))]


def _unknown_section(given: Given, legal: Legal) -> list[Problem]:
    """Said once for a section of a file, not again for each of its keys."""
    if len(given.path) > 1 and given.place.line is not None:
        return []
    section = given.path[0]
    meant = _in_another_section(section, legal) or nearest(section, SECTIONS).strip()
    remedy = meant or f"Sections: {', '.join(SECTIONS)}"
    return [given.place.problem(f"{section} is not a section of a recipe", remedy)]


def _meant_in(section: str, name: str, legal: Legal) -> str:
    names = [path[1] for path in legal if path[0] == section]
    near = nearest(name, names).strip() or _in_another_section(name, legal)
    return near or f"Keys of {section}: {', '.join(names)}"


def _in_another_section(name: str, legal: Legal) -> str:
    home = next((path for path in legal if path[1] == name), None)
    return f"Did you mean {'.'.join(home)!r}?" if home else ""
