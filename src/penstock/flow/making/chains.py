"""The steps on one sample, one after another: the plain way, which every fusion must equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock import seeds
from penstock.augment.applying import apply_geometric, apply_pixelwise, image_size
from penstock.augment.steps import is_geometric
from penstock.errors import HopError, OptionError
from penstock.flow.making.randomness import generator_at
from penstock.flow.order.orders import Draws
from penstock.flow.pipelines import Pipeline
from penstock.flow.pixel_moves import check_boxes_inside, check_field_kept_size
from penstock.flow.steps import Augment, Map
from penstock.flow.user_errors import reason_in_function
from penstock.samples import Kind, Sample


@dataclass(frozen=True)
class Link:
    """One step of a chain, and what its randomness follows from beside the sample."""

    step: Map | Augment
    seed: int
    number: int

    def uniforms(self, draws: Draws) -> NDArray[np.float64]:
        """The random numbers of an augmentation for each of these samples."""
        assert isinstance(self.step, Augment)
        return seeds.sample_uniforms(self.seed, self.number, draws.epoch, draws.key, self.step.step.uniform_count)

    def bits(self, draws: Draws) -> int:
        """What the generator of a function is set to for one sample."""
        return int(seeds.sample_bits(self.seed, self.number, draws.epoch, draws.key)[0])


Chain = tuple[Link, ...]


def run_chain(chain: Chain, sample: Sample, kinds: Mapping[str, Kind], draw: Draws) -> Sample:
    """All steps on one sample; `draw` says which it is."""
    before, is_mapped = sample, False
    for link in chain:
        step = link.step
        if isinstance(step, Augment):
            sample = _augmented(link, step, sample, kinds, draw)
        else:
            sample, is_mapped = call(link, sample, kinds, draw), True
    if is_mapped and "boxes" in kinds.values():
        check_boxes_inside(before, sample, kinds)
    return sample


def _augmented(link: Link, step: Augment, sample: Sample, kinds: Mapping[str, Kind], draw: Draws) -> Sample:
    uniforms = link.uniforms(draw)
    if not is_geometric(step.step):
        return apply_pixelwise(step.step, sample, kinds, uniforms)
    views = step.step.views(np.array([image_size(sample, kinds)], np.int64), uniforms)
    return apply_geometric(sample, kinds, views)


def call(link: Link, sample: Sample, kinds: Mapping[str, Kind], draw: Draws) -> Sample:
    """A function of the user on one sample, which it gets as a dictionary of its own."""
    step = link.step
    assert isinstance(step, Map)
    more: dict[str, Any] = {"rng": generator_at(link.bits(draw))} if step.is_random else {}
    if step.field is not None:
        if step.field not in sample:
            raise OptionError(f"map(field={step.field!r}): a sample has {', '.join(sample)}.")
        value = step.function(sample[step.field], **more)
        check_field_kept_size(step.field, sample, value, kinds)
        return {**sample, step.field: value}
    if isinstance(step.function, Pipeline):
        more["kinds"] = kinds
    made = step.function(dict(sample), **more)
    if not isinstance(made, dict):
        raise OptionError(
            f"the function {function_name(step.function)} of map gave {type(made).__name__}. It gets a sample as a "
            "dict and must return one; map(function, field='image') works on one field."
        )
    return made


def function_name(function: Any) -> str:
    """How to call a function in an error message."""
    return getattr(function, "__qualname__", None) or type(function).__name__


def call_batched(link: Link, batch: dict[str, Any], epoch: int, number: int) -> dict[str, Any]:
    """A function of the user on a whole batch; what is random in it belongs to this batch alone."""
    step = link.step
    assert isinstance(step, Map)
    bits = int(seeds.sample_bits(link.seed, link.number, np.array([epoch]), np.array([number]))[0])
    more: dict[str, Any] = {"rng": generator_at(bits)} if step.is_random else {}
    name = function_name(step.function)
    if step.field is not None and step.field not in batch:
        raise OptionError(f"map(field={step.field!r}): a batch has {', '.join(batch)}.")
    try:
        if step.field is not None:
            return {**batch, step.field: step.function(batch[step.field], **more)}
        made = step.function(batch, **more)
    except Exception as error:
        raise HopError("transform", f"batch {number}", reason_in_function(error)) from error
    if not isinstance(made, dict):
        raise OptionError(
            f"the function {name} of map(batched=True) gave {type(made).__name__} and must return a dict."
        )
    return made
