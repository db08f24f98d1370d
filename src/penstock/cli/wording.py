"""Hints of Python's arguments as the options that a command has: units='frames' becomes --units frames."""

from __future__ import annotations

import re

from penstock.cli.options import COLUMN_OPTIONS, EXPORT_OPTIONS, PACK_OPTIONS, SOURCE_OPTIONS

_RUNNING = ("resume", "overwrite")
_NAMES = (*SOURCE_OPTIONS, *PACK_OPTIONS, *EXPORT_OPTIONS, *COLUMN_OPTIONS, *_RUNNING)
# Not after a dot: task.size=fast is a key of a recipe, which commands take as it is.
_ARGUMENT = re.compile(
    rf"(?<![\w.\-])(?P<name>{'|'.join(sorted(_NAMES, key=len, reverse=True))})="
    r"(?P<value>'[^'\n]*'|\"[^\"\n]*\"|\[[^\]\n]*\]|[\w.%-]*\w)"
)

_LISTED = re.compile(r"[^,\s\[\]'\"]+")
_PLAIN = re.compile(r"[\w.,:/%+-]+")  # what a shell takes without quotes


def in_command_words(text: str) -> str:
    """A message with arguments written as options."""
    return _ARGUMENT.sub(_as_option, text)


def _as_option(found: re.Match[str]) -> str:
    flag = "--" + found["name"].replace("_", "-")
    value = found["value"]
    if value in ("True", "False"):
        return flag if value == "True" else f"no {flag}"
    if value[0] == "[":
        value = ",".join(_LISTED.findall(value))
    elif value[0] in "'\"":
        value = value[1:-1]
    return f"{flag} {value}" if _PLAIN.fullmatch(value) else f"{flag} '{value}'"
