"""Words that messages share: numbers with their noun."""

from __future__ import annotations

from collections.abc import Mapping

# Nouns whose plural is not their singular with an s, as far as messages use them.
_PLURALS = {"box": "boxes", "class": "classes", "batch": "batches", "image without boxes": "images without boxes"}


# Verbs that follow a number with its noun, for one and for several.
_VERBS = {"is": "are", "was": "were", "has": "have", "lies": "lie", "holds": "hold"}


def counted(count: int | None, thing: str, verb: str = "") -> str:
    """How many of something: 1 sample, 3,680 samples, 2 classes; None is samples without end.

    With a verb it agrees too: 1 sample was, 2 samples were.
    """
    if count is None:
        return f"{plural(thing)} without end"
    number = f"{count:,} {thing if count == 1 else plural(thing)}"
    return f"{number} {verb if count == 1 else _VERBS[verb]}" if verb else number


def counted_names(counts: Mapping[str, int]) -> str:
    """Counts by their names, which are in the plural: {"samples": 1, "classes": 2} is 1 sample, 2 classes."""
    return ", ".join(f"{count:,} {_singular(name) if count == 1 else name}" for name, count in counts.items())


def _singular(things: str) -> str:
    """One of some things: images without boxes is image without boxes."""
    noun, *more = things.split(" ")
    known = {many: one for one, many in _PLURALS.items()}
    return " ".join([known.get(noun, noun.removesuffix("s")), *more])


def plural(thing: str) -> str:
    """Several of a thing; a noun is put into the plural by its last word."""
    *before, noun = thing.split(" ")
    return _PLURALS.get(thing) or " ".join([*before, _PLURALS.get(noun, f"{noun}s")])
