"""The steps of a plan as written: frozen, checked when they are made, doing nothing by themselves.

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from penstock.errors import RecipeError, one_of

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
            raise RecipeError(f"shard: rank {self.rank} must be from 0 to {self.world_size - 1} (world_size − 1).")


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
        raise RecipeError(f'{name}={value!r} must be a whole number or "auto".')
    return value


def conditions_of(columns: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    if not columns:
        raise RecipeError('where needs at least one column, such as where(label="cat").')
    return tuple(
        (name, tuple(value) if isinstance(value, (list, set, range)) else value) for name, value in columns.items()
    )


def _at_least(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise RecipeError(f"{name}: {value!r} must be a whole number from {least}.")


def _callable(name: str, function: Any) -> None:
    if not callable(function):
        raise RecipeError(f"{name} takes a function, not {type(function).__name__}.")
