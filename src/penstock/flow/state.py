"""Where a flow is, as a few numbers; and what must be equal for them to mean the same batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xxhash

from penstock.errors import OptionError
from penstock.flow.steps import Cache, Prefetch, Shard, Step
from penstock.samples import Concat, Store, Subset

if TYPE_CHECKING:
    from penstock.flow.plans import FlowOptions, Plan


VERSION = 1


class Reached(NamedTuple):
    """How far a flow has come, in batches of this rank: the next one is `batch` of `epoch`."""

    epoch: int
    batch: int
    bad: int  # substitutes so far in this epoch


@dataclass(frozen=True)
class State:
    """The next batch: of which epoch, which number; and of which plan, made by which decoder."""

    version: int
    plan: str  # fingerprint: source, seed, steps and global batch; not workers, ranks or executor
    decoder: str
    epoch: int
    batch: int
    bad: int  # substitutes so far in this epoch

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def checked_state(state: Any) -> State:
    """A state that was read from somewhere."""
    names = list(State.__dataclass_fields__)
    if not isinstance(state, dict) or set(state) != set(names):
        raise OptionError(f"restore takes what state() gave: a mapping with {', '.join(names)}.")
    if state["version"] != VERSION:
        raise OptionError(f"this state has version {state['version']}; this Penstock reads version {VERSION}.")
    numbers = [state["epoch"], state["batch"], state["bad"]]
    if not all(isinstance(number, int) and not isinstance(number, bool) and number >= 0 for number in numbers):
        raise OptionError("epoch, batch and bad of a state are whole numbers from 0. Was the file edited?")
    return State(**state)


def check_same(state: State, plan: str, decoder: str, allow_other: bool) -> None:
    """Whether a state means the same batches here."""
    if state.plan != plan:
        raise OptionError(
            f"this state belongs to another plan ({state.plan}, here {plan}): source, seed, steps and global batch "
            "size must be the same; workers, executor and world size may differ."
        )
    if state.decoder != decoder and not allow_other:
        raise OptionError(
            f"this state was taken with {state.decoder}, and here {decoder} decodes: pixels may differ by a level. "
            "Pass restore(state, allow_other=True) to go on all the same."
        )


# Fingerprints: what must be equal for two plans to give the same batches.


def plan_fingerprint(plan: Plan, options: FlowOptions) -> str:
    """128 bits of what a plan says; steps that only say how to run are left out."""
    return digest([described_plan(plan), options.on_bad_sample, options.fast_decode])


def digest(description: Any) -> str:
    return xxhash.xxh3_128_hexdigest(repr(description).encode())


def described_plan(plan: Plan) -> Any:
    """A plan as plain values."""
    steps = [described_step(step) for step in plan.steps if not isinstance(step, (Prefetch, Shard))]
    if plan.mixture is not None:
        members = [described_plan(member) for member in plan.mixture.plans]
        return ["mix", members, plan.mixture.weights, plan.mixture.until, plan.seed, steps]
    if plan.stream is not None:
        return ["stream", plan.stream.fingerprint(), plan.seed, steps]
    assert plan.source is not None
    return [described_source(plan.source), plan.seed, steps]


def described_step(step: Step) -> Any:
    values = {
        field.name: described_value(getattr(step, field.name))
        for field in dataclasses.fields(step)  # type: ignore[arg-type]
        if field.name != "workers" and not (isinstance(step, Cache) and field.name == "place")
    }
    return [type(step).__name__, values]


def described_value(value: Any) -> Any:
    """A value of a step, so that equal ones give equal text on every machine."""
    if isinstance(value, np.ndarray):
        return ["array", value.dtype.str, value.shape, xxhash.xxh3_64_hexdigest(np.ascontiguousarray(value).data)]
    if isinstance(value, (list, tuple)):
        return [described_value(one) for one in value]
    if isinstance(value, dict):
        return {str(name): described_value(one) for name, one in value.items()}
    if callable(value) and not isinstance(value, type) and not dataclasses.is_dataclass(value):
        return described_function(value)
    return str(value) if isinstance(value, Path) else repr(value)


def described_function(function: Callable[..., Any]) -> Any:
    """A function by its name and its code: one that was changed makes another plan."""
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    if code is not None:
        return [name, _described_code(code)]
    words = repr(function)  # of an object that can be called, such as a pipeline: what it was made with
    return [name, None if " at 0x" in words else words]


def _described_code(code: Any) -> Any:
    constants = [
        _described_code(one) if hasattr(one, "co_code") else _described_constant(one) for one in code.co_consts
    ]
    return [code.co_code.hex(), code.co_names, constants]


def _described_constant(value: Any) -> Any:
    # The order of a set differs from process to process.
    return sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)


def described_source(source: Store) -> Any:
    """What a source is: by its own word where it has one, else its kind, length and schema."""
    own = source.fingerprint()
    if own is not None:
        return own
    if isinstance(source, Subset):
        return ["subset", described_source(source.source), described_value(source.indices)]
    if isinstance(source, Concat):
        return ["concat", [described_source(one) for one in source.sources]]
    return [source.kind.__qualname__, len(source), repr(source.schema)]
