"""Plans in the words of the user: each step as it was written, numbers and sizes as people read them."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

from penstock.flow.making.chains import function_name
from penstock.flow.making.clips import Clips
from penstock.flow.plans import Plan
from penstock.flow.steps import Augment, Map, Step, Where
from penstock.samples import Concat, Store, Subset
from penstock.wording import counted

_UNITS = (("GB", 2**30), ("MB", 2**20), ("KB", 2**10))


def size_words(size: float) -> str:
    """Bytes in the unit that suits them."""
    for unit, factor in _UNITS:
        if size >= factor:
            return f"{size / factor:,.{1 if size < 100 * factor else 0}f} {unit}"
    return f"{size:,.0f} bytes"


def step_words(step: Step) -> str:
    """A step as it is written in a program."""
    from penstock.flow.flow import Flow

    if isinstance(step, Augment):
        return f"map({object_words(step.step)})"
    if isinstance(step, Map):
        more = [f"field={step.field!r}"] if step.field is not None else []
        more += ["batched=True"] if step.batched else []
        more += [f"workers={step.workers}"] if step.workers is not None else []
        return f"map({', '.join([function_name(step.function), *more])})"
    if isinstance(step, Where):
        return f"where({', '.join(f'{name}={value_words(value)}' for name, value in step.conditions)})"
    parameters = inspect.signature(getattr(Flow, step.name)).parameters
    return f"{step.name}({', '.join(_arguments(step, parameters))})"


def object_words(value: Any) -> str:
    """A frozen object as it is made, without what it has by default."""
    return f"{type(value).__name__}({', '.join(_arguments(value, inspect.signature(type(value)).parameters))})"


def _arguments(value: Any, parameters: Any) -> list[str]:
    found: list[str] = []
    for field in dataclasses.fields(value):
        parameter = parameters.get(field.name)
        given = getattr(value, field.name)
        default = None if parameter is None else parameter.default
        if parameter is None or given == default or (given is None and default == "auto"):
            continue
        has_default = default is not parameter.empty
        is_named = parameter.kind is parameter.KEYWORD_ONLY or (has_default and (found or field.name == "window"))
        found.append(f"{field.name}={value_words(given)}" if is_named else value_words(given))
    return found


def value_words(value: Any) -> str:
    """A value of a step, short."""
    if callable(value) and not dataclasses.is_dataclass(value):
        return function_name(value)
    if isinstance(value, Path):
        return repr(str(value))
    if isinstance(value, tuple) and len(value) == 2 and value[0] == value[1] and isinstance(value[0], int):
        return repr(value[0])  # width and height of a square
    text = repr(value)
    return (
        text if len(text) <= 40 else f"{type(value).__name__} of {len(value):,}" if hasattr(value, "__len__") else "…"
    )


def plan_words(plan: Plan) -> str:
    """A plan in one line, as it is written in a program."""
    steps = "".join(f".{step_words(step)}" for step in plan.steps)
    if plan.mixture is not None:
        weights = ", ".join(f"{weight:g}" for weight in plan.mixture.weights)
        return f"mix([{', '.join(map(plan_words, plan.mixture.plans))}], weights=[{weights}]){steps}"
    start = type(plan.stream).__name__ if plan.source is None else source_words(plan.source)
    return f"Flow({start}{f', seed={plan.seed}' if plan.seed else ''}){steps}"


def source_words(source: Store) -> str:
    """What a source is."""
    if isinstance(source, Subset):
        return f"{counted(len(source), 'sample')} of {source_words(source.source)}"
    if isinstance(source, Concat):
        return " + ".join(source_words(one) for one in source.sources)
    if isinstance(source, Clips):
        return f"{counted(len(source), 'clip')} of {source_words(source.source)}"
    name = source.kind.__name__ if source.path is None else source.path.name
    return f"{name} ({counted(len(source), 'sample')})"
