"""Many samples of a pack at once, for flows: where pixels are, how large images are, columns by number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.packing.columns import FixedView
from penstock.packing.mapping import MappedShard
from penstock.storage.advising import advise, resident_pages, stretches

Numbers = NDArray[np.int64]
Mapped = Callable[[int], MappedShard]


def places_of(
    columns: dict[str, NDArray[Any]], mapped: Mapped, indices: Numbers, names: tuple[str, ...]
) -> tuple[tuple[Any, ...], Numbers]:
    """The shards that hold these images, and for each image: which of them, and these columns of the index."""
    numbers = columns["shard"][indices]
    shards = numbers[:1]
    if len(numbers) and (numbers == numbers[0]).all():  # the usual case of small packs, without sorting
        numbers = np.zeros_like(numbers)
    else:
        shards, numbers = np.unique(numbers, return_inverse=True)
    buffers = tuple(mapped(int(shard)).data for shard in shards)
    named = (columns[name][indices] for name in names)
    return buffers, np.stack([numbers, *named], axis=1).astype(np.int64)


def _present(numbers: NDArray[Any]) -> Numbers:
    """The numbers that occur, in order; they are small, and `np.unique` imports a package of 12 ms first."""
    return np.flatnonzero(np.bincount(numbers))


def gathered(name: str, columns: dict[str, NDArray[Any]], mapped: Mapped, indices: Numbers) -> NDArray[Any] | None:
    """A stored column of these samples; None where its values have no fixed size."""
    shards, rows = columns["shard"][indices], columns["row"][indices]
    found: NDArray[Any] | None = None
    for shard in _present(shards):
        places = np.flatnonzero(shards == shard)
        for inner, views, numbers in mapped(int(shard)).rows(rows[places]):
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
    for shard in _present(shards):
        places = np.flatnonzero(shards == shard)
        for inner, views, numbers in mapped(int(shard)).rows(rows[places]):
            wanted = numbers.tolist()
            values = zip(*(views[name].take(wanted) for name in names), strict=True)
            for place, row in zip(places[inner].tolist(), values, strict=True):
                found[place] = row
    return found


def advised(
    columns: dict[str, NDArray[Any]], mapped: Mapped, indices: Numbers, advice: int | None, *, inner: bool = False
) -> int:
    """Advise the system about the bytes of these samples; how many bytes that were."""
    shards = columns["shard"][indices]
    total = 0
    for shard in _present(shards):
        chosen = indices[shards == shard]
        starts, lengths = columns["offset"][chosen].astype(np.int64), columns["length"][chosen].astype(np.int64)
        total += advise(mapped(int(shard)).memory, stretches(starts, lengths, inner=inner), advice)
    return total


def resident_share(columns: dict[str, NDArray[Any]], mapped: Mapped, indices: Numbers) -> float:
    """Which share of these samples begins on a page that is in memory; 1 where the system does not tell."""
    shards = columns["shard"][indices]
    found = []
    for shard in _present(shards):
        starts = columns["offset"][indices[shards == shard]].astype(np.int64)
        resident = resident_pages(mapped(int(shard)).memory, starts)
        if resident is None:
            return 1.0
        found.append(resident)
    return float(np.concatenate(found).mean()) if found else 1.0
