"""One sample the way the engine makes it: through the kernel where the plan is fused, so that the bits are the same."""

from __future__ import annotations

import numpy as np

from penstock.augment.applying import apply_geometric
from penstock.codecs.decoding_room import ROOM
from penstock.errors import HopError, PackError
from penstock.flow.making.chains import Chain, run_chain
from penstock.flow.making.fusing import Fusion, images_of_range
from penstock.flow.making.leaves import UNREADABLE, Leaf
from penstock.flow.measuring.hops import Stopwatch
from penstock.flow.order.draws import Draws
from penstock.flow.user_errors import reason_in_function
from penstock.samples import Sample


def made_sample(leaf: Leaf, index: int) -> Sample:
    """What a leaf without random steps makes of a sample: all its fields, and what it says of itself."""
    draw = Draws(np.zeros(1, np.int64), np.array([index]), np.array([index], np.uint64), np.zeros(1, np.int64))
    return leaf.sample(draw, Stopwatch()) if leaf.fusion is None else _fused_sample(leaf, leaf.fusion, draw)


def _fused_sample(leaf: Leaf, fusion: Fusion, draw: Draws) -> Sample:
    index, image = int(draw.index[0]), leaf.source.schema.image
    assert image is not None
    frames = leaf.source.images_at(draw.index[:0])[2]
    shape = fusion.target.shape if frames == 1 else (frames, *fusion.target.shape)
    pixels = np.empty((1, *shape), fusion.target.dtype)
    with ROOM.within(leaf.room):
        views, failed = images_of_range(fusion, leaf.source, draw, pixels, Stopwatch())
    if failed:
        raise HopError(failed[0].hop, leaf.source.describe(index), failed[0].reason, UNREADABLE)
    sample = leaf.source.annotations(index)
    others = {name: kind for name, kind in leaf.kinds.items() if name != image.name}
    if others:
        sample = apply_geometric(sample, others, views.span(0, 1))
    sample[image.name] = pixels[0]
    return _run(leaf, leaf.chain[fusion.links :], sample, draw)


def _run(leaf: Leaf, chain: Chain, sample: Sample, draw: Draws) -> Sample:
    try:
        return run_chain(chain, sample, leaf.kinds, draw)
    except (HopError, PackError):
        raise
    except Exception as error:
        raise HopError("transform", leaf.source.describe(int(draw.index[0])), reason_in_function(error)) from error
