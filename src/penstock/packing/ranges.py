"""Stored columns of many samples of a pack at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.packing.columns import FixedView
from penstock.packing.mapping import MappedShard
from penstock.samples.mapped_store import occurring

Numbers = NDArray[np.int64]
Mapped = Callable[[int], MappedShard]


def gathered(name: str, columns: dict[str, NDArray[Any]], mapped: Mapped, indices: Numbers) -> NDArray[Any] | None:
    """A stored column of these samples; None where its values have no fixed size."""
    shards, rows = columns["shard"][indices], columns["row"][indices]
    found: NDArray[Any] | None = None
    for shard in occurring(shards):
        places = np.flatnonzero(shards == shard)
        for inner, views, numbers in mapped(shard).rows(rows[places]):
            view = views[name]
            if not isinstance(view, FixedView):
                return None
            if found is None:
                found = np.empty((len(indices), *view.values.shape[1:]), view.values.dtype)
            found[places[inner]] = view.values[numbers]
    return found


def stored_rows(
    names: Sequence[str], columns: dict[str, NDArray[Any]], mapped: Mapped, indices: Numbers
) -> list[tuple[Any, ...]]:
    """The values that these columns have for each sample, as they are stored."""
    shards, rows = columns["shard"][indices], columns["row"][indices]
    found: list[tuple[Any, ...]] = [()] * len(indices)
    for shard in occurring(shards):
        places = np.flatnonzero(shards == shard)
        for inner, views, numbers in mapped(shard).rows(rows[places]):
            wanted = numbers.tolist()
            values = zip(*(views[name].take(wanted) for name in names), strict=True)
            for place, row in zip(places[inner].tolist(), values, strict=True):
                found[place] = row
    return found
