"""Options that a method does not have are errors that name the nearest one, or say what to do instead."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from penstock.errors import RecipeError, nearest

AUTOMATIC = "Functions run in parallel, in order, and as many at once as pays: leave it out (workers=n sets a limit)."
INSTEAD = {
    "num_parallel_calls": AUTOMATIC,
    "num_workers": "Say it where the flow begins: Flow(source, workers=4).",
    "deterministic": "Samples always come in order: leave it out.",
    "buffer_size": "shuffle() mixes all samples, and prefetch(4) counts batches: leave the name out.",
    "drop_remainder": "It is called drop_last.",
    "reshuffle_each_iteration": "Every epoch has an order of its own: leave it out.",
    "pin_memory": "Say it where tensors are made: flow.to_torch(pin_memory=True).",
}


class UnknownOption(RecipeError, TypeError):  # noqa: N818 - users see a RecipeError
    """An option that a method does not have; a TypeError too, as Python raises it."""


def knows_its_options(kind: type) -> type:
    """Let every public method of a class, and its making, say which option was meant."""
    for name, function in list(vars(kind).items()):
        if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, checked(function, kind.__name__ if name == "__init__" else name))
    return kind


def checked(function: Any, name: str) -> Any:
    """A function that refuses options it does not have."""
    parameters = inspect.signature(function).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return function
    options = tuple(one.name for one in parameters if one.name != "self")

    @functools.wraps(function)
    def called(*values: Any, **named: Any) -> Any:
        for given in named:
            if given not in options:
                raise UnknownOption(f"{name} has no option {given!r}{_words(options)}.{_instead(given, options)}")
        return function(*values, **named)

    return called


def _words(options: tuple[str, ...]) -> str:
    return f"; it has {', '.join(options)}" if options else ""


def _instead(given: str, options: tuple[str, ...]) -> str:
    return nearest(given, options) or (f" {INSTEAD[given]}" if given in INSTEAD else "")
