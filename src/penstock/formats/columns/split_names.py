"""Names such as x_train, y_test or train/images: one table for each split."""

from __future__ import annotations

import re
from collections.abc import Iterable

SPLIT_WORDS = "train|training|test|testing|val|valid|validation"
_AFTER = re.compile(rf"(?P<column>.+)[_/.-](?P<split>{SPLIT_WORDS})", re.IGNORECASE)
_BEFORE = re.compile(rf"(?P<split>{SPLIT_WORDS})[_/.-](?P<column>.+)", re.IGNORECASE)
_IN_FILES = re.compile(rf"(?:^|[_/.-])(?P<split>{SPLIT_WORDS})(?=$|[_/.-])", re.IGNORECASE)


def by_split(names: Iterable[str]) -> dict[str | None, dict[str, str]]:
    """Split → column → stored name. Names without the word of a split stand under None."""
    found: dict[str | None, dict[str, str]] = {}
    for name in names:
        match = _BEFORE.fullmatch(name) or _AFTER.fullmatch(name)
        split, column = (match["split"].lower(), match["column"]) if match else (None, name)
        found.setdefault(split, {})[column] = name
    return found


def split_of_file(path: str) -> str | None:
    """The split that the name of a file tells: train-00000-of-00002.parquet; None where it names none or several."""
    words = {match["split"].lower() for match in _IN_FILES.finditer(path)}
    return words.pop() if len(words) == 1 else None
