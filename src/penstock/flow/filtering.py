"""`filter`: one pass over all samples decides which stay."""

from __future__ import annotations

import numpy as np

from penstock.flow.chains import Chain
from penstock.flow.draws import Draws, Numbers
from penstock.flow.hops import Stopwatch
from penstock.flow.steps import Filter, Step
from penstock.samples import Source


def run_filter(source: Source, chain: Chain, indices: Numbers, step: Step) -> Numbers:
    """The positions among these samples for which the function is true."""
    from penstock.flow.making import Leaf

    assert isinstance(step, Filter)
    leaf = Leaf(source, chain, None)
    keep = []
    for position, index in enumerate(indices.tolist()):
        zero = np.zeros(1, np.int64)
        sample = leaf.sample(Draws(zero, np.array([index]), zero.astype(np.uint64), zero), Stopwatch())
        if step.function(sample):
            keep.append(position)
    return np.array(keep, np.int64)
