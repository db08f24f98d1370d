"""Flows to examine: of data that come without one, with a remedy in place, and small ones to try things on."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from penstock.augment import HorizontalFlip, RandomResizedCrop
from penstock.augment.steps import is_geometric
from penstock.flow.flow import Flow, cache_source
from penstock.flow.plans import Plan
from penstock.flow.steps import Augment, Batch, Cache, Clips, Map, Prefetch, Repeat, Shuffle, Step
from penstock.flow.streams.sequences import gives_batches
from penstock.samples import Field, Store, Subset

USUAL_SIZE, USUAL_BATCH = 224, 64


def usual_flow(source: Store, batch_size: int) -> Flow:
    """What most trainings on images do: shuffle, crop and resize at random, mirror."""
    flow = Flow(source).shuffle()
    if source.schema.image is not None:
        flow = flow.map(RandomResizedCrop(USUAL_SIZE)).map(HorizontalFlip())
    return flow.batch(batch_size, shapes="ragged" if any(map(_differs, source.schema.fields)) else "fixed")


def _differs(field: Field) -> bool:
    """Whether a field has another size in every sample."""
    if field.kind in ("labels", "array"):
        return field.shape is None or None in field.shape
    return field.kind in ("boxes", "text", "mask")


def with_batches(flow: Flow, batch_size: int) -> Flow:
    """A flow of samples in batches; one that has batches as it is."""
    has_batches = flow.running.has_batches or gives_batches(flow.plan.source)
    return flow if has_batches else flow.batch(batch_size, shapes="ragged")


def can_be_tried(flow: Flow) -> bool:
    """Whether the plan can be put on other samples: one source with random access, whose items are samples."""
    plan = flow.plan
    return plan.source is not None and not gives_batches(plan.source) and len(plan.source) > 0


def is_video(flow: Flow) -> bool:
    """Whether frames are decoded from the frames before them."""
    source = flow.plan.source
    return source is not None and "Video" in source.images_at(np.zeros(0, np.int64)).store.kind.__name__


def few(source: Store, count: int) -> Subset:
    """Some samples of a source; of videos and rasters such as follow one another."""
    length = len(source)
    count = min(count, length)
    if _below(source).parts is not None:
        start = (length - count) // 2
        return Subset(source, np.arange(start, start + count))
    return Subset(source, np.unique(np.linspace(0, length - 1, count).astype(np.int64)))


def _below(source: Store) -> Store:
    while isinstance(source, Subset):
        source = source.source
    return source


def on_source(flow: Flow, source: Store) -> Flow:
    """The plan on fewer samples, which come so often that epochs end about as often as they do."""
    plan = flow.plan
    assert plan.source is not None
    steps, times = plan.steps, math.ceil(len(plan.source) / max(len(source), 1))
    if times > 1 and not any(isinstance(step, Repeat) for step in steps):
        steps = _before_batch(steps, Repeat(times))
    return flow.rewrite(replace(plan, source=source, steps=steps))


def _before_batch(steps: tuple[Step, ...], step: Step) -> tuple[Step, ...]:
    place = next((number for number, one in enumerate(steps) if isinstance(one, Batch)), len(steps))
    return (*steps[:place], step, *steps[place:])


def has_cache(flow: Flow) -> bool:
    return any(isinstance(step, Cache) for step in flow.plan.steps)


def cached(flow: Flow, *, at_source: bool = False) -> Flow:
    """What does not change from epoch to epoch is kept in memory; `at_source`, what the source gives."""
    if at_source:
        return cache_source(flow, "memory")
    plan = flow.plan
    return flow.rewrite(replace(plan, steps=_cached(plan.steps)))


def _cached(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """With a cache before the first random step on samples."""
    place = next((number for number, step in enumerate(steps) if _ends_cache(step)), len(steps))
    return (*steps[:place], Cache("memory"), *steps[place:])


def _ends_cache(step: Step) -> bool:
    return isinstance(step, (Batch, Repeat)) or (isinstance(step, (Map, Augment)) and step.is_random)


def cached_behind(flow: Flow) -> str:
    """The name of the step that a cache comes behind; empty where it comes before all of them."""
    steps = _cached(flow.plan.steps)
    before = steps[: steps.index(Cache("memory"))]
    names = [step.name for step in before if isinstance(step, (Map, Augment, Shuffle, Clips))]
    return names[-1] if names else ""


def without_prefetch(flow: Flow) -> Flow:
    """How far ahead batches are made is no longer pinned."""
    plan = flow.plan
    return flow.rewrite(replace(plan, steps=tuple(one for one in plan.steps if not isinstance(one, Prefetch))))


def in_batches(flow: Flow, size: int) -> Flow:
    """The same samples in batches of another size."""
    plan = flow.plan
    steps = tuple(replace(step, size=size) if isinstance(step, Batch) else step for step in plan.steps)
    return flow.rewrite(replace(plan, steps=steps))


def pinned_prefetch(plan: Plan) -> int | None:
    return next((step.batches for step in plan.steps if isinstance(step, Prefetch)), None)


def device_steps(flow: Flow) -> tuple[Augment, ...]:
    """Steps on pixels that a device could do instead."""
    steps = [step for step in flow.plan.steps if isinstance(step, Augment)]
    return tuple(step for step in steps if not is_geometric(step.step))


def without_device_steps(flow: Flow) -> Flow:
    plan, left_out = flow.plan, device_steps(flow)
    return flow.rewrite(replace(plan, steps=tuple(step for step in plan.steps if step not in left_out)))


def resizes(flow: Flow) -> bool:
    """Whether images are resized anyway, so that smaller ones may be stored."""
    steps = [step.step for step in flow.plan.steps if isinstance(step, Augment)]
    return any(getattr(step, "shape", "") == "resize" for step in steps)


def output_size(flow: Flow) -> tuple[int, int] | None:
    """Width and height of the images in a batch, where a step gives them one size."""
    steps = [step.step for step in flow.plan.steps if isinstance(step, Augment)]
    sizes: list[tuple[int, int] | None] = [
        getattr(step, "output_size", None) for step in steps if getattr(step, "shape", "flip") != "flip"
    ]
    return sizes[-1] if sizes else None
