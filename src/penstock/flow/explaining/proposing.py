"""Where a cache would pay: what it saves against what it takes. It is proposed, never inserted.

Where a random crop is fused into the decoder, a cache of whole images saves little: only what is seen is decoded
anyway, and 500×375 px of JPEG cost 1.4 ms of CPU fused and 1.1 ms cached. Behind a Resize(256) it is 1.6 and 0.5 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.flow.budget import process_budget
from penstock.flow.caching.cached_source import CachedSource
from penstock.flow.caching.memory_cache import SHARE_OF_BUDGET
from penstock.flow.explaining.wording import size_words
from penstock.flow.making.chains import Chain
from penstock.flow.making.leaves import Leaf
from penstock.flow.steps import Augment

if TYPE_CHECKING:
    from penstock.flow.running import Running

WORTH_IT = 0.5  # decoding must be this part of the CPU time
LOOKED_AT = 4096  # images whose sizes stand for all


def cache_words(running: Running) -> str | None:
    """A proposal, where decoded samples fit into the budget and decoding is most of the work."""
    hops = running.metrics.costs.hops
    decode, total = hops["decode"].cpu_seconds, running.metrics.work().cpu_seconds
    if len(running.program.leaves) != 1 or decode < WORTH_IT * total:
        return None
    leaf = running.program.leaves[0]
    if isinstance(leaf.source, CachedSource):
        return None
    constant = constant_links(leaf.chain)
    size = sample_bytes(leaf, constant)
    if size is None or is_cheap(leaf) or (leaf.fusion is not None and not _resizes(constant)):
        return None
    needs, room = size * len(leaf.source), int(process_budget().limit * SHARE_OF_BUDGET)
    where = f"behind {constant[-1].step.name}" if constant else "before the first map"
    seconds = decode / max(hops["decode"].items, 1) * len(leaf.source)
    saves = f"decoding, {seconds:,.1f} CPU seconds an epoch"
    if needs > room and not constant:
        return None  # whole images on a disk are no less to read
    call, place = (".cache()", "memory") if needs <= room else ('.cache("folder")', "disk")
    return f"A cache would pay: {call} {where} takes ≈ {size_words(needs)} of {place} and saves most of {saves}."


def _resizes(chain: Chain) -> bool:
    return any(isinstance(link.step, Augment) and getattr(link.step.step, "shape", "") == "resize" for link in chain)


def constant_links(chain: Chain) -> Chain:
    """The steps before the first random one: what a cache can hold."""
    for number, link in enumerate(chain):
        if link.step.is_random:
            return chain[:number]
    return chain


def is_cheap(leaf: Leaf) -> bool:
    """Whether samples come without decoding: raw pixels, or a cache already."""
    return isinstance(leaf.source, CachedSource) or (leaf.fusion is not None and leaf.fusion.stored == "raw")


def sample_bytes(leaf: Leaf, constant: Chain) -> float | None:
    """The bytes of a decoded image after these steps, where they can be told."""
    steps = [link.step.step for link in constant if isinstance(link.step, Augment)]
    if len(steps) < len(constant):
        return None  # what a function of the user gives is not known
    sizes = [getattr(step, "output_size", None) for step in steps if getattr(step, "shape", "") != "flip"]
    base, _, frames = leaf.source.images_at(np.zeros(0, np.int64))
    if sizes and sizes[-1] is not None:
        width, height = sizes[-1]
        return float(width * height * 3 * frames)
    if sizes or not len(base):
        return None
    known = base.image_sizes(np.unique(np.linspace(0, len(base) - 1, min(LOOKED_AT, len(base))).astype(np.int64)))
    return None if known is None else float(np.prod(known, axis=1, dtype=np.int64).mean() * 3 * frames)
