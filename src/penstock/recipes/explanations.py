"""What each option is for, taken from the docstring of its dataclass, where it is written once.

A line of such a docstring is `name   what it is for`, or `name, name   what they are for`; a deeper line goes on.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

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
