"""The planner's second half: what the kernel does at once, how batches look, and the program that workers run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from penstock import augment
from penstock.augment.composing import fusible
from penstock.augment.pixelwise import Normalize
from penstock.codecs.kernel import Target
from penstock.errors import OptionError
from penstock.flow.engine import gives_back
from penstock.flow.making.chains import Chain
from penstock.flow.making.fusing import Fusion, stored_as
from penstock.flow.making.layout import Layout, Place, layout_of_sample, layout_of_schema, place_of_field
from penstock.flow.making.leaves import Leaf
from penstock.flow.making.program import Program
from penstock.flow.planning import Planned
from penstock.flow.plans import FlowOptions, Plan
from penstock.flow.steps import Augment, Batch, Shard
from penstock.samples import RESERVED, Sample, Store

TryFirst = Callable[[Program], Layout]
FastDecode = bool | str  # "auto": reduced scale only where an image is at least twice too large


def leaf_of(source: Store, chain: Chain, fast_decode: FastDecode, memory: int | None = None) -> Leaf:
    """A leaf, with as much of its chain fused as gives the same bits."""
    return Leaf(source, chain, _fusion(source, chain, fast_decode), memory)


def _fusion(source: Store, chain: Chain, fast_decode: FastDecode) -> Fusion | None:
    stored = stored_as(source)
    if stored is None:
        return None
    geometric = _geometric(chain)
    size = _output_size(source, geometric)
    if size is None:
        return None
    normalize = _normalize(chain, len(geometric))
    target = Target(*size) if normalize is None else Target(*size, "chw-float32", normalize.mean, normalize.std)
    reduced = "never" if fast_decode is False else "when-twice"
    return Fusion(stored, geometric, target, normalize is not None, reduced, fast_decode is True, gives_back(source))  # type: ignore[arg-type]


def _geometric(chain: Chain) -> Chain:
    """The first links of a chain that are one view together and give one size."""
    steps = []
    for link in chain:
        if not isinstance(link.step, Augment) or not augment.is_geometric(link.step.step):
            break
        steps.append(link.step.step)
    return chain[: fusible(steps)]


def _output_size(source: Store, geometric: Chain) -> tuple[int, int] | None:
    """Width and height of all images after the geometric steps, where they are the same for all."""
    sizes = [link.step.step.output_size for link in geometric if link.step.step.shape != "flip"]  # type: ignore[union-attr]
    if sizes:
        last: tuple[int, int] | None = sizes[-1]
        return last
    return source.images_at(np.zeros(0, np.int64)).store.uniform_image_size()


def _normalize(chain: Chain, position: int) -> Normalize | None:
    if len(chain) > position and isinstance(chain[position].step, Augment):
        step = chain[position].step.step  # type: ignore[union-attr]
        return step if isinstance(step, Normalize) else None
    return None


def program_of(
    planned: Planned, plan: Plan, batch_chain: Chain, options: FlowOptions, try_first: TryFirst = Program.first_layout
) -> Program:
    """The program of a plan that has a batch. `try_first` makes the first sample, where only that shows the layout."""
    batch, substitutes, fast_decode = plan.batch, options.on_bad_sample == "substitute", options.fast_decode
    if batch is None:
        raise OptionError("the plan has no batch: add .batch(size) before iterating over it.")
    leaves = tuple(
        leaf_of(source, chain, fast_decode, options.memory)
        for source, chain in zip(planned.sources, planned.chains, strict=True)
    )
    carried = {"index": True, "draw": planned.repeats_samples, "member": len(leaves) > 1, "epoch": plan.has_passes}
    numbers = tuple(name for name, is_carried in carried.items() if is_carried)
    # Of several ranks each would work out the views of all: they look at their own ranges only.
    shared = any(isinstance(step, Shard) and step.world_size > 1 for step in plan.steps)
    looks_ahead = len(leaves) == 1 and not shared
    program = Program(
        plan.seed, planned.order, leaves, Layout({}), batch, batch_chain, substitutes, numbers, looks_ahead
    )
    return replace(program, layout=_numbered(_layout(program, planned.source, try_first), numbers))


def _numbered(layout: Layout, numbers: tuple[str, ...]) -> Layout:
    """The layout with the numbers that tell which sample a row is."""
    taken = [name for name in numbers if name in layout.fixed or name in layout.loose]
    if taken:
        raise OptionError(
            f"a field cannot be called {taken[0]!r}: batches tell by it which samples they have. Rename it."
        )
    places = {name: Place((), np.dtype(np.uint64 if name == "draw" else np.int64)) for name in numbers}
    return replace(layout, fixed={**layout.fixed, **places})


def _layout(program: Program, source: Store, try_first: TryFirst) -> Layout:
    layouts = [known_layout(leaf) for leaf in program.leaves]
    known = [layout for layout in layouts if layout is not None]
    if len(known) == len(layouts):
        if any(layout != known[0] for layout in known):
            raise OptionError("the samples of the mixed flows differ in fields or sizes; give each the same steps.")
        return _checked(known[0], source, program.batch)
    return _checked(try_first(program), source, program.batch, is_tried=True)


def known_layout(leaf: Leaf) -> Layout | None:
    """The layout that follows from plan and schema alone: where all of the chain is fused."""
    if leaf.fusion is None or len(leaf.chain) != leaf.fusion.links:
        return None
    shape = leaf.fusion.target.shape
    frames = leaf.source.images_at(np.zeros(0, np.int64))[2]
    place = Place(shape if frames == 1 else (frames, *shape), leaf.fusion.target.dtype)
    return layout_of_schema(leaf.source.schema, place)


def layout_like(sample: Sample, source: Store, batch: Batch) -> Layout:
    """The layout of batches of samples like this one."""
    fields = {name: value for name, value in sample.items() if name not in RESERVED}
    return _checked(layout_of_sample(fields), source, batch, is_tried=True)


def _checked(layout: Layout, source: Store, batch: Batch, is_tried: bool = False) -> Layout:
    """Fixed shapes must be fixed; with other shapes, what was only seen in one sample is not taken for granted."""
    if batch.shapes == "fixed":
        _check_fixed(layout, source)
        return layout
    if not is_tried:
        return layout
    promised = {field.name: place_of_field(field) for field in source.schema.fields}
    sure = {name: place for name, place in layout.fixed.items() if place.shape == () or place == promised.get(name)}
    return Layout(sure, (*layout.loose, *(name for name in layout.fixed if name not in sure)))


def _check_fixed(layout: Layout, source: Store) -> None:
    for field in source.schema.fields:
        is_there = field.name in layout.fixed or field.name in layout.loose
        if is_there and (field.kind == "boxes" or (field.name in layout.loose and field.kind != "text")):
            raise OptionError(
                f'{field.name!r} has another length in every sample. Use batch(…, shapes="ragged") to get them one by '
                'one, or shapes="padded" to get one array filled up to the longest.'
            )
