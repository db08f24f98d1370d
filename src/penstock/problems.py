"""The door of every verb: what is wrong with a source is asked once, and refused everywhere.

`pack`, `export`, `Flow`, `train`, `evaluate`, `predict`, `doctor` and `show` come through `refuse_problems`, so that
none of them takes what another one, or `check`, refuses. Annotations that are wrong are always refused: a sample whose
row could not be used would look like one without boxes. Whole samples that cannot be had (`Problem.unreadable`) are
left to the reader, which raises for each of them, if the user asked to skip or substitute those.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from penstock.errors import DataError, Problem

# Asking may open every video, so each source is asked once.
_asked: WeakKeyDictionary[Any, tuple[Problem, ...]] = WeakKeyDictionary()


def as_source(given: Any) -> Any:
    """A path as `penstock.open` reads it, wherever a Source is taken; all else as it is."""
    if isinstance(given, (str, os.PathLike)):
        return importlib.import_module("penstock").open(given)  # which stands above whoever asks
    return given


def known_problems(source: Any) -> tuple[Problem, ...]:
    """What a source knows to be wrong without decoding its samples; warnings too. Views pass on what is below them."""
    ask = getattr(source, "problems", None)
    if ask is None:
        return ()
    asked = getattr(ask, "__self__", source)
    try:
        if asked not in _asked:
            _asked[asked] = _ask(asked)
        return _asked[asked]
    except TypeError:  # a user's class that has no hash, or takes no weak reference
        return _ask(asked)


def _ask(source: Any) -> tuple[Problem, ...]:
    known_damage = source.damage() if getattr(source, "damage_is_known", False) else ()
    return (*source.problems(), *known_damage)


def refuse_problems(source: Any, *, leaves_unreadable: bool = False) -> None:
    """Raise all known problems of a source at once; `leaves_unreadable`: but those of samples that reading refuses."""
    raise_problems([one for one in known_problems(source) if not (leaves_unreadable and one.unreadable)])


def raise_problems(problems: Sequence[Problem]) -> None:
    """Raise every problem that is more than a warning, at once."""
    errors = [problem for problem in problems if not problem.warning]
    if errors:
        raise DataError(errors)
