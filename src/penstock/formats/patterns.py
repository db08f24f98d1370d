"""Name patterns such as '{label}.*' or '{animal}_*': a word in braces takes what stands there, * takes anything."""

from __future__ import annotations

import re

from penstock.errors import OptionError


class NamePattern:
    """Reads one value out of file names."""

    def __init__(self, text: str, word: str | None = None) -> None:
        words = re.findall(r"\{(\w+)\}", text)
        if len(words) != 1 or (word is not None and words[0] != word):
            example = "{" + (word or "animal") + "}_*"
            raise OptionError(f"pattern {text!r} must name exactly one value in braces, such as {example!r}.")
        self.text, self.word = text, words[0]
        pieces = re.split(r"(\{\w+\}|\*|\?)", text)
        self._regex = re.compile("".join(_piece(piece) for piece in pieces))

    def value(self, name: str) -> str | None:
        """What stands in the braces in this name, or None where the name does not fit."""
        found = self._regex.fullmatch(name)
        return found.group(1) if found else None

    def __repr__(self) -> str:
        return f"NamePattern({self.text!r})"


def _piece(piece: str) -> str:
    if piece.startswith("{"):
        return "(.+?)"
    return {"*": ".*", "?": "."}.get(piece, re.escape(piece))
