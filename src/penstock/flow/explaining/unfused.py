"""Why a step is not made together with decoding, and what to write so that it is."""

from __future__ import annotations

import numpy as np

from penstock.augment.composing import fusible
from penstock.augment.pixelwise import Normalize
from penstock.augment.steps import is_geometric
from penstock.flow.caching.cached_source import CachedSource
from penstock.flow.making.chains import Chain, Link, function_name
from penstock.flow.making.fusing import stored_as
from penstock.flow.making.leaves import Leaf
from penstock.flow.steps import Augment, Map

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
