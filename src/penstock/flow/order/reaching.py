"""Which samples of each source an order may ever ask for, so that a cache on disk holds these and no others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from penstock.flow.order.draws import Numbers, Order
from penstock.flow.order.joining import Joined
from penstock.flow.order.mixing import Mixed
from penstock.flow.order.plain import Everything, Picked, Sliced


def reachable(order: Order) -> dict[int, Numbers]:
    """For each member, the numbers of the samples that some epoch may show, ascending."""
    found: dict[int, list[Numbers]] = {}
    for part in _fixed_parts(order):
        length = part.length or 0
        draws = part.draws(np.zeros(length, np.int64), np.arange(length, dtype=np.int64))
        if length:
            found.setdefault(int(draws.member[0]), []).append(draws.index)
    return {member: np.unique(np.concatenate(indices)) for member, indices in found.items()}


def _fixed_parts(order: Order) -> Iterator[Order]:
    """The orders below chance and repetition: those that show the same samples in every epoch."""
    if _is_fixed(order):
        yield order
    elif isinstance(order, (Mixed, Joined)):
        for part in order.orders:
            yield from _fixed_parts(part)
    else:
        yield from _fixed_parts(order.inner)  # type: ignore[attr-defined]


def _is_fixed(order: Order) -> bool:
    return isinstance(order, Everything) or (isinstance(order, (Picked, Sliced)) and _is_fixed(order.inner))
