"""Mistakes that are seen when a step is added: each says what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from penstock.errors import RecipeError
from penstock.flow.steps import (
    COUNT_STEPS,
    ORDER_STEPS,
    Augment,
    Batch,
    Cache,
    Map,
    Prefetch,
    Repeat,
    Shard,
    Step,
)


def check_next(before: Sequence[Step], step: Step) -> None:
    """Whether a step may follow these."""
    is_batched = any(isinstance(one, Batch) for one in before)
    if isinstance(step, (Batch, Shard, Prefetch)) and any(isinstance(one, type(step)) for one in before):
        raise RecipeError(f"there is a {step.name} already: a plan has one. Take one of them out.")
    if is_batched:
        _check_on_batches(step)
    elif isinstance(step, Map) and step.batched:
        raise RecipeError("map(batched=True) works on batches: call batch(size) before it.")
    if any(isinstance(one, Repeat) and one.times is None for one in before):
        _check_on_endless(step)


def _check_on_batches(step: Step) -> None:
    if isinstance(step, Augment) or (isinstance(step, Map) and not step.batched):
        raise RecipeError(
            f"{step.name} works on samples: move it before batch"
            + (", or say batched=True for a function of whole batches." if isinstance(step, Map) else ".")
        )
    if isinstance(step, (*ORDER_STEPS, Cache)):
        raise RecipeError(f"{step.name} works on samples: move it before batch.")


def _check_on_endless(step: Step) -> None:
    if isinstance(step, COUNT_STEPS) and not isinstance(step, Repeat):
        return
    if isinstance(step, ORDER_STEPS):
        raise RecipeError(f"{step.name} needs an end, and repeat() has none: move it before repeat().")


def not_a_source(given: Any) -> RecipeError:
    """What to write for something that a flow cannot be made of as it is."""
    return RecipeError(
        f"Flow takes a Source (schema, len, read, decode), not {type(given).__name__}. {_instead(given)}"
    )


def _instead(given: Any) -> str:
    if isinstance(given, Iterator):
        return (
            "Give the function that makes it, because every epoch begins anew: Flow(penstock.from_generator(function))."
        )
    if hasattr(given, "__getitem__") and hasattr(given, "__len__"):
        return (
            "If its items are batches, as Keras has them, write Flow(penstock.from_sequence(it)); if they are samples, "
            'as torch has them, Flow(penstock.from_sequence(it, items="samples")).'
        )
    if callable(given):
        return "For a function that gives samples write Flow(penstock.from_generator(function))."
    if isinstance(given, Iterable):
        return "For an iterable write Flow(penstock.from_generator(lambda: iterable))."
    return "Use penstock.open for a pack or files, penstock.from_generator for an iterable."
