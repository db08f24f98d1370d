"""Files of a Run as values; what is damaged is said by file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from penstock.errors import DataError, Problem
from penstock.storage.documents import load_json, load_yaml


def json_file(path: Path, absent: Any) -> Any:
    """The content of a JSON file, or what stands for a file that is not there."""
    if not path.exists():
        return absent
    try:
        return load_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise damaged(path, None, str(error)) from None


def json_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a log; none if there is no log, and without a last line that a killed process left unfinished."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return [_value(path, number, line) for number, line in enumerate(lines[:-1], 1) if line]


def _value(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        value = load_json(line)
    except ValueError as error:
        raise damaged(path, number, str(error)) from None
    if not isinstance(value, dict):
        raise damaged(path, number, "it is not a set of names and values")
    return value


def yaml_file(path: Path) -> dict[str, Any]:
    """The content of a YAML file with sections."""
    try:
        value = load_yaml(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise damaged(path, None, " ".join(str(error).split())) from None
    if not isinstance(value, dict):
        raise damaged(path, None, "it has no sections")
    return value


def damaged(path: Path, line: int | None, reason: str) -> DataError:
    return DataError([Problem(path.as_posix(), line, f"this cannot be read: {reason}", "Take the file from a backup")])
