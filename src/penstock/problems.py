"""The door of every verb: what is wrong with a source is asked once, and refused everywhere.

`pack`, `export`, `Flow`, `train`, `evaluate`, `predict`, `doctor` and `show` come through `refuse_problems`, so that
none of them takes what another one, or `check`, refuses. Annotations that are wrong are always refused: a sample whose
row could not be used would look like one without boxes. Whole samples that cannot be had (`Problem.unreadable`) are
left to the reader, which raises for each of them, if the user asked to skip or substitute those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from penstock.errors import DataError, Problem

# Asking may open every video, so each source is asked once.
_asked: WeakKeyDictionary[Any, tuple[Problem, ...]] = WeakKeyDictionary()


def known_problems(store: Any) -> tuple[Problem, ...]:
    """What a store knows to be wrong without decoding its samples; warnings too. Views pass on what is below them."""
    try:
        if store not in _asked:
            _asked[store] = _ask(store)
        return _asked[store]
    except TypeError:  # a class that has no hash
        return _ask(store)


def _ask(store: Any) -> tuple[Problem, ...]:
    known_damage = store.damage() if store.damage_is_known else ()
    return (*store.problems(), *known_damage)


def refuse_problems(source: Any, *, leaves_unreadable: bool = False) -> None:
    """Raise all known problems of a source at once; `leaves_unreadable`: but those of samples that reading refuses."""
    raise_problems([one for one in known_problems(source) if not (leaves_unreadable and one.unreadable)])


def raise_problems(problems: Sequence[Problem]) -> None:
    """Raise every problem that is more than a warning, at once."""
    errors = [problem for problem in problems if not problem.warning]
    if errors:
        raise DataError(errors)
