"""A batch of one sample has no statistics: normalisations then use those that they have learned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.nn.modules.batchnorm import _BatchNorm


@contextmanager
def learned_statistics(network: torch.nn.Module, rows: int) -> Iterator[None]:
    """For one sample, as the last of an epoch may be alone, layers normalise as in evaluation; else nothing changes.

    Without this torch refuses such a batch where maps are 1×1, and takes the sample for its own mean elsewhere.
    """
    if rows > 1:
        yield
        return
    layers = [layer for layer in network.modules() if isinstance(layer, _BatchNorm) and layer.training]
    for layer in layers:
        layer.eval()
    try:
        yield
    finally:
        for layer in layers:
            layer.train()
