"""Small text files that many formats have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from penstock.formats.exporting.pieces import csv_line

CLASSES_NAME = "classes.txt"


def write_classes(folder: Path, classes: Sequence[str]) -> None:
    """One class a line, in the order of their numbers; nothing where there are none."""
    if classes:
        text = "".join(name.replace("\n", " ") + "\n" for name in classes)
        (folder / CLASSES_NAME).write_text(text, encoding="utf-8")


def write_table(path: Path, header: Sequence[str], lines: Iterable[str]) -> None:
    """A CSV file of lines that pieces kept for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(csv_line(header) + "\n")
        file.writelines(f"{line}\n" for line in lines)


def shortest(value: Any) -> str:
    """A number with as many digits as reading it back in the same type needs."""
    return str(value).removesuffix(".0")
