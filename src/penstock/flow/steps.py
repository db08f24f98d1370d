"""The steps of a plan as written: frozen, checked when they are made and when they are added to a plan.

| step                                              | works on            | changes               |
|---------------------------------------------------|---------------------|-----------------------|
| Shuffle Where Filter Sample Interleave Clips      | the order           | which sample is where |
| Take Skip Repeat                                  | samples, or batches | how many              |
| Map Augment Cache                                 | each sample         | what is in it         |
| Batch, and Map(batched=True) after it             | batches             | what is in them       |
| Shard Prefetch                                    | the run             | nothing               |
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from penstock.errors import OptionError, one_of

Shapes = Literal["fixed", "padded", "ragged"]
Until = Literal["first", "all"]
Labelled = Literal["first", "middle", "last", "all"]
Edge = Literal["repeat", "drop"]
Function = Callable[..., Any]


class Step:
    """One step of a plan; `name` is how the user wrote it."""

    @property
    def name(self) -> str:
        return type(self).__name__.lower()


@dataclass(frozen=True)
class Shuffle(Step):
    window: int | None = None  # shards that are mixed together; None mixes the whole dataset

    def __post_init__(self) -> None:
        if self.window is not None:
            _at_least("shuffle(window)", self.window, 1)


@dataclass(frozen=True)
class Where(Step):
    conditions: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Filter(Step):
    function: Function

    def __post_init__(self) -> None:
        _callable("filter", self.function)


@dataclass(frozen=True, eq=False)
class Sample(Step):
    weights: Any
    count: int | None


@dataclass(frozen=True)
class Interleave(Step):
    cycle_length: int
    block_length: int
    by: str

    def __post_init__(self) -> None:
        _at_least("interleave(cycle_length)", self.cycle_length, 1)
        _at_least("interleave(block_length)", self.block_length, 1)


@dataclass(frozen=True)
class Clips(Step):
    frames: int
    stride: int
    step: int
    label: Labelled
    edge: Edge

    def __post_init__(self) -> None:
        for option in ("frames", "stride", "step"):
            _at_least(f"clips({option})", getattr(self, option), 1)
        one_of("label", self.label, get_args(Labelled))
        one_of("edge", self.edge, get_args(Edge))


@dataclass(frozen=True)
class Take(Step):
    count: int

    def __post_init__(self) -> None:
        _at_least("take", self.count, 0)


@dataclass(frozen=True)
class Skip(Step):
    count: int

    def __post_init__(self) -> None:
        _at_least("skip", self.count, 0)


@dataclass(frozen=True)
class Repeat(Step):
    times: int | None

    def __post_init__(self) -> None:
        if self.times is not None:
            _at_least("repeat", self.times, 1)


@dataclass(frozen=True)
class Map(Step):
    """A function of the user: of a sample, of one field of it, or of a whole batch."""

    function: Function
    field: str | None = None
    batched: bool = False
    workers: int | None = None  # at most so many calls at once

    def __post_init__(self) -> None:
        _callable("map", self.function)
        if self.workers is not None:
            _at_least("map(workers)", self.workers, 1)

    @property
    def is_random(self) -> bool:
        """A function that takes `rng` gets a generator that belongs to this sample alone."""
        return takes_rng(self.function)


@dataclass(frozen=True)
class Augment(Step):
    """One of `penstock.augment`."""

    step: Any

    @property
    def name(self) -> str:
        return type(self.step).__name__

    @property
    def is_random(self) -> bool:
        return bool(self.step.uniform_count)


@dataclass(frozen=True)
class Cache(Step):
    place: str | Path


@dataclass(frozen=True)
class Batch(Step):
    size: int
    shapes: Shapes
    fill: float
    drop_last: bool

    def __post_init__(self) -> None:
        _at_least("batch", self.size, 1)
        one_of("shapes", self.shapes, get_args(Shapes))


@dataclass(frozen=True)
class Shard(Step):
    rank: int
    world_size: int
    keep_all: bool

    def __post_init__(self) -> None:
        _at_least("shard(world_size)", self.world_size, 1)
        if not 0 <= self.rank < self.world_size:
            raise OptionError(f"shard: rank {self.rank} must be from 0 to {self.world_size - 1} (world_size − 1).")


@dataclass(frozen=True)
class Prefetch(Step):
    batches: int | None

    def __post_init__(self) -> None:
        if self.batches is not None:
            _at_least("prefetch", self.batches, 1)


ORDER_STEPS = (Shuffle, Where, Filter, Sample, Interleave, Clips)
COUNT_STEPS = (Take, Skip, Repeat)
SAMPLE_STEPS = (Map, Augment, Cache)
RUN_STEPS = (Cache, Shard, Prefetch)


def numbered(steps: Sequence[Step]) -> list[tuple[int, Step]]:
    """Every step with the number that its randomness follows from; steps that only say how to run do not count."""
    found, number = [], 0
    for step in steps:
        found.append((number, step))
        number += not isinstance(step, RUN_STEPS)
    return found


def takes_rng(function: Function) -> bool:
    """Whether a function has a parameter called `rng`."""
    try:
        return "rng" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C, without a signature
        return False


def number_or_auto(name: str, value: int | str | None) -> int | None:
    """A number, or None for "auto"."""
    if value == "auto" or value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise OptionError(f'{name}={value!r} must be a whole number or "auto".')
    return value


def conditions_of(columns: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    if not columns:
        raise OptionError('where needs at least one column, such as where(label="cat").')
    return tuple(
        (name, tuple(value) if isinstance(value, (list, set, range)) else value) for name, value in columns.items()
    )


def _at_least(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OptionError(f"{name}: {value!r} must be a whole number from {least}.")


def _callable(name: str, function: Any) -> None:
    if not callable(function):
        raise OptionError(f"{name} takes a function, not {type(function).__name__}.")


# Mistakes that are seen when a step is added: each says what to write instead.


def check_next(before: Sequence[Step], step: Step) -> None:
    """Whether a step may follow these."""
    is_batched = any(isinstance(one, Batch) for one in before)
    if isinstance(step, (Batch, Shard, Prefetch)) and any(isinstance(one, type(step)) for one in before):
        raise OptionError(f"there is a {step.name} already: a plan has one. Take one of them out.")
    if is_batched:
        _check_on_batches(step)
    elif isinstance(step, Map) and step.batched:
        raise OptionError("map(batched=True) works on batches: call batch(size) before it.")
    if any(isinstance(one, Repeat) and one.times is None for one in before):
        _check_on_endless(step)


def _check_on_batches(step: Step) -> None:
    if isinstance(step, Augment) or (isinstance(step, Map) and not step.batched):
        raise OptionError(
            f"{step.name} works on samples: move it before batch"
            + (", or say batched=True for a function of whole batches." if isinstance(step, Map) else ".")
        )
    if isinstance(step, (*ORDER_STEPS, Cache)):
        raise OptionError(f"{step.name} works on samples: move it before batch.")


def _check_on_endless(step: Step) -> None:
    if isinstance(step, COUNT_STEPS) and not isinstance(step, Repeat):
        return
    if isinstance(step, ORDER_STEPS):
        raise OptionError(f"{step.name} needs an end, and repeat() has none: move it before repeat().")


def not_a_source(given: Any) -> OptionError:
    """What to write for something that a flow cannot be made of as it is."""
    return OptionError(
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
