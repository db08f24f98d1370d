"""One sample of a plan, the plain way: read, decoded, and one step after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from penstock import augment
from penstock.augment.pixelwise import Normalize
from penstock.flow import steps
from penstock.flow.plans import Plan
from penstock.seeds import sample_bits, sample_uniforms

Sample = dict[str, Any]


class Drawn(NamedTuple):
    """One position of an epoch: which sample of which source, and what its randomness follows from."""

    member: int
    number: int
    key: int
    epoch: int


Order = Callable[[int], Iterable[Drawn]]


@dataclass
class Part:
    """A plan up to batch: its order, and for each source the steps on its samples with seed and number."""

    order: Order
    sources: list[Any]
    chains: list[list[tuple[Any, int, int]]]
    is_endless: bool = False
    draws_again: bool = False  # whether a sample may come twice in one pass

    def length(self) -> int:
        return len(list(self.order(0)))


def numbered(plan: Plan) -> list[tuple[int, Any]]:
    """The steps with their numbers; those that only say how to run are left out, and change no number."""
    counted = [step for step in plan.steps if not isinstance(step, (steps.Cache, steps.Shard, steps.Prefetch))]
    return list(enumerate(counted))


def made(part: Part, draw: Drawn) -> Sample:
    source = part.sources[draw.member - _first_member(part, draw)]
    sample = source.decode(source.read(draw.number))
    for step, seed, number in part.chains[draw.member - _first_member(part, draw)]:
        sample = (
            _augmented(step, sample, source, seed, number, draw)
            if isinstance(step, steps.Augment)
            else _called(step, sample, seed, number, draw)
        )
    return sample


def _first_member(part: Part, draw: Drawn) -> int:
    """Members of a plan inside a mix are numbered on; a filter there sees its own source alone."""
    return draw.member if len(part.sources) == 1 else 0


def _augmented(step: steps.Augment, sample: Sample, source: Any, seed: int, number: int, draw: Drawn) -> Sample:
    own = step.step.resolved(source) if isinstance(step.step, Normalize) else step.step
    uniforms = sample_uniforms(seed, number, np.array([draw.epoch]), np.array([draw.key], np.uint64), own.uniform_count)
    return augment.apply(own, sample, _Given(uniforms), schema=source.schema)  # type: ignore[arg-type]


class _Given:
    """Stands where a generator does, and gives numbers that are known already."""

    def __init__(self, uniforms: Any) -> None:
        self._uniforms = uniforms

    def random(self, shape: tuple[int, ...]) -> Any:
        assert self._uniforms.shape == shape
        return self._uniforms


def _called(step: steps.Map, sample: Sample, seed: int, number: int, draw: Drawn) -> Sample:
    bits = sample_bits(seed, number, np.array([draw.epoch]), np.array([draw.key], np.uint64))
    more = generator(step, int(bits[0]))
    if step.field is not None:
        return {**sample, step.field: step.function(sample[step.field], **more)}
    return step.function(dict(sample), **more)


def generator(step: steps.Map, bits: int) -> dict[str, Any]:
    return {"rng": np.random.Generator(np.random.Philox(key=bits))} if step.is_random else {}
