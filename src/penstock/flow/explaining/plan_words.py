"""Plans in words: each step as it was written, and why a step is not made together with decoding."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import numpy as np

from penstock.augment.composing import fusible
from penstock.augment.pixelwise import Normalize
from penstock.augment.steps import is_geometric
from penstock.flow.caching.cached_source import CachedSource
from penstock.flow.making.chains import Chain, Link, function_name
from penstock.flow.making.clips import Clips
from penstock.flow.making.fusing import stored_as
from penstock.flow.making.leaves import Leaf
from penstock.flow.plans import Plan
from penstock.flow.steps import Augment, Map, Step, Where
from penstock.samples import Concat, Store, Subset
from penstock.wording import counted

# Plans in the words of the user: each step as it was written, numbers and sizes as people read them.


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


# Why a step is not made together with decoding, and what to write so that it is.


MADE_FROM = {
    "encoded": "images are decoded",
    "raw": "raw pixels are copied",
    "kept": "pixels in the cache are copied",
}


def fused_words(leaf: Leaf) -> str:
    """What the kernel makes in one pass."""
    assert leaf.fusion is not None
    names = [link.step.name for link in leaf.chain[: leaf.fusion.links]]
    what = MADE_FROM[leaf.fusion.stored]
    passed = f" with {_listed(names)} in one pass" if names else ""
    straight = "" if len(leaf.chain) > leaf.fusion.links else ", straight into the batch"
    return f"{what}{passed}{straight}"


def unfused_words(leaf: Leaf) -> list[str]:
    """What runs step by step and why; nothing where all of it is fused."""
    if leaf.fusion is None:
        reason = _of_source(leaf) if stored_as(leaf.source) is None else _reason(leaf.chain, _first_unfused(leaf))
        return [f"step by step: {reason}"]
    rest = leaf.chain[leaf.fusion.links :]
    if not rest:
        return []
    return [f"then {_listed([_name(link) for link in rest])} step by step: {_reason(leaf.chain, leaf.fusion.links)}"]


_NO_SIZE = "images have different sizes and no step gives them one; add a Resize or a crop"


def _first_unfused(leaf: Leaf) -> int:
    """The place in the chain where one view ends."""
    steps = []
    for link in leaf.chain:
        if not isinstance(link.step, Augment) or not is_geometric(link.step.step):
            break
        steps.append(link.step.step)
    return fusible(steps)


def _of_source(leaf: Leaf) -> str:
    base = leaf.source.images_at(np.zeros(0, np.int64))[0]
    pixels = [field.name for field in base.schema.fields if field.kind in ("image", "mask")]
    if base.schema.image is None:
        return "the samples have no image"
    if len(pixels) > 1:
        return f"{_listed(pixels)} must be seen alike"
    if isinstance(base, CachedSource):
        return "samples come from the cache as they were made"
    return f"{base.kind.__name__} decodes by itself; a pack leaves it to the kernel"


def _reason(chain: Chain, position: int) -> str:
    if position >= len(chain):
        return _NO_SIZE
    link, before = chain[position], chain[:position]
    if isinstance(link.step, Map):
        return f"{_name(link)} is a function of yours"
    step = link.step.step
    if not is_geometric(step):
        return _reason_of_pixelwise(link, before)
    if step.shape == "resize":
        return _reason_of_resize(link, before)
    return f"{_name(link)} may pad what was cropped before it; leave one of the two out"


def _reason_of_pixelwise(link: Link, before: Chain) -> str:
    if isinstance(link.step, Augment) and isinstance(link.step.step, Normalize):
        return f"Normalize comes after {_name(before[-1])}" if before else _NO_SIZE
    return f"{_name(link)} works on finished pixels"


def _reason_of_resize(link: Link, before: Chain) -> str:
    shapes = [(one.step.name, one.step.step.shape) for one in before if isinstance(one.step, Augment)]
    flips = [name for name, shape in shapes if shape == "flip"]
    resizes = [name for name, shape in shapes if shape == "resize"]
    if flips:
        return f"{flips[0]} comes before the resize {link.step.name}; put it behind"
    if resizes:
        return f"{resizes[0]} resizes already; leave one of the two out"
    return f"{before[-1].step.name} may pad before the resize {link.step.name}; put it behind"


def _name(link: Link) -> str:
    return function_name(link.step.function) if isinstance(link.step, Map) else link.step.name


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
