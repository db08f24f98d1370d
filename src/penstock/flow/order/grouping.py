"""Equal numbers of an array taken together, for functions that are vectorised over all else."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from penstock.flow.order.draws import Numbers


def groups(values: Numbers) -> Iterator[tuple[int, slice | Numbers]]:
    """Each distinct value once, with what selects its places in the array."""
    if not len(values):
        return
    if (values == values[0]).all():  # a range of positions rarely meets the end of an epoch
        yield int(values[0]), slice(None)
        return
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.diff(values[order])) + 1
    for places in np.split(order, starts):
        yield int(values[places[0]]), places
