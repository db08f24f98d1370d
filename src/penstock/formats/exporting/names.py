"""Names of files made from keys: they stay in their folder, hold nothing that a file system refuses, and are unique.

| in a key                                        | in the name                                       |
|-------------------------------------------------|---------------------------------------------------|
| the ending of an image (.jpg, .png, …)          | left out; the ending says what the file really is |
| slashes and backslashes                         | folders, or _ where the format has none           |
| .. or . between slashes, a / or C: at the start | left out: a name never leaves its folder          |
| < > : " | ? * # and control characters          | _                                                 |
| what another sample is called, case ignored     | -2, -3 … at the end                               |
"""

from __future__ import annotations

import re

import xxhash

from penstock.formats.paths import IMAGE_ENDINGS

# File systems allow 255 bytes for one name; the rest is for the ending and a number.
LONGEST_BYTES = 200

_REFUSED = re.compile(r'[<>:"|?*#\x00-\x1f\x7f]')
_DRIVE = re.compile(r"^[A-Za-z]:")
_RESERVED = re.compile(r"^(con|prn|aux|nul|com\d|lpt\d)$", re.IGNORECASE)


def clean(key: str, *, folders: bool = True) -> str:
    """A key as a relative path without an ending, by the table above; never empty."""
    text = _DRIVE.sub("", key.replace("\\", "/"))
    pieces = [_clean_piece(piece) for piece in text.split("/") if piece not in ("", ".", "..")]
    pieces = [piece for piece in pieces if piece] or ["sample"]
    pieces[-1] = _without_ending(pieces[-1])
    return "/".join(pieces) if folders else "_".join(pieces)


def _clean_piece(piece: str) -> str:
    # Windows drops dots and blanks at the end, and a dot in front hides a file.
    cleaned = _REFUSED.sub("_", piece).rstrip(". ").lstrip(".")
    cleaned = cleaned.encode("utf-8", "replace")[:LONGEST_BYTES].decode("utf-8", "ignore")
    return f"{cleaned}_" if _RESERVED.match(cleaned) else cleaned


def _without_ending(name: str) -> str:
    stem, dot, ending = name.rpartition(".")
    return stem if stem and dot and f".{ending.lower()}" in IMAGE_ENDINGS else name


class Names:
    """The names that are taken; a hash of each is kept, about 70 bytes of memory for each sample."""

    def __init__(self) -> None:
        self._taken: set[int] = set()

    def claim(self, name: str) -> str:
        """This name, or the next free one with a number behind it."""
        free, number = name, 1
        while _hash(free) in self._taken:
            number += 1
            free = f"{name}-{number}"
        self._taken.add(_hash(free))
        return free

    def take(self, name: str) -> None:
        """A name that an earlier run gave."""
        self._taken.add(_hash(name))


def _hash(name: str) -> int:
    return xxhash.xxh3_64_intdigest(name.casefold().encode("utf-8", "surrogatepass"))
