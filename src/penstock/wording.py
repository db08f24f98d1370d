"""Words that messages share: numbers with their noun."""

from __future__ import annotations

# Nouns whose plural is not their singular with an s, as far as messages use them.
_PLURALS = {"box": "boxes", "class": "classes", "batch": "batches", "image without boxes": "images without boxes"}


def counted(count: int | None, thing: str) -> str:
    """How many of something: 1 sample, 3,680 samples, 2 classes; None is samples without end."""
    if count is None:
        return f"{plural(thing)} without end"
    return f"{count:,} {thing if count == 1 else plural(thing)}"


def plural(thing: str) -> str:
    """Several of a thing; a noun is put into the plural by its last word."""
    *before, noun = thing.split(" ")
    return _PLURALS.get(thing) or " ".join([*before, _PLURALS.get(noun, f"{noun}s")])
