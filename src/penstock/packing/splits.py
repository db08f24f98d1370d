"""Which sample goes to train, which to val: by whole groups, so that neighbours never leak across.

Every way here ends: nothing is drawn again and again until it fits.

    labels all alike within a group (photos)   each class is cut by the fractions, groups in seeded order
    mixed labels within a group (videos)       rarest class first, to the split that lacks it most
    one group only                             blocks in its own order, with a gap between them
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.seeds import name_bits

GAP = "gap"

# How far a cut may move to a better place, in samples.
MOST_MOVED = 2000


def assign_splits(
    groups: Sequence[str],
    counts: NDArray[np.int64],
    label_counts: NDArray[np.int64],
    fractions: Mapping[str, float],
    seed: int,
) -> NDArray[np.int16]:
    """The number of the split of each group.

    `counts` says how many samples a group has, `label_counts` (groups × classes) how often each class occurs.
    """
    shares = np.array(list(fractions.values()))
    bits = np.array([name_bits(seed, group) for group in groups], dtype=np.uint64)
    kinds = (label_counts > 0).sum(axis=1)
    if kinds.max(initial=0) <= 1:
        classes = (
            np.where(kinds == 1, label_counts.argmax(axis=1), -1) if label_counts.shape[1] else -np.ones(len(bits))
        )
        codes = _cut_each_class(classes, counts, bits, shares)
    else:
        codes = _rarest_first(counts, label_counts, bits, shares)
    return _no_split_empty(codes, bits, shares)


def _cut_each_class(
    classes: NDArray[np.generic], counts: NDArray[np.int64], bits: NDArray[np.uint64], shares: NDArray[np.float64]
) -> NDArray[np.int16]:
    """Within each class put groups in seeded order and cut where the fractions say."""
    order = np.lexsort((bits, classes))
    sizes = counts[order].astype(np.float64)
    ends = np.cumsum(sizes)
    starts = np.flatnonzero(np.diff(classes[order], prepend=np.nan))
    lengths = np.diff(np.append(starts, len(order)))
    before = np.repeat(ends[starts] - sizes[starts], lengths)
    totals = np.repeat(np.add.reduceat(sizes, starts), lengths) if len(starts) else sizes
    middle = (ends - sizes / 2 - before) / np.maximum(totals, 1)
    codes = np.empty(len(order), np.int16)
    codes[order] = np.minimum(np.searchsorted(np.cumsum(shares), middle, side="right"), len(shares) - 1)
    return codes


def _rarest_first(
    counts: NDArray[np.int64],
    label_counts: NDArray[np.int64],
    bits: NDArray[np.uint64],
    shares: NDArray[np.float64],
) -> NDArray[np.int16]:
    """Groups with the rarest class first, each to the split that still lacks most of that class."""
    weights = np.column_stack([label_counts, counts]).astype(np.float64)
    missing = np.outer(shares, weights.sum(axis=0))
    occurs_in = (label_counts > 0).sum(axis=0)
    rarity = np.where(label_counts > 0, occurs_in, len(counts) + 1)
    rarest = np.where(rarity.min(axis=1) > len(counts), label_counts.shape[1], rarity.argmin(axis=1))
    codes = np.zeros(len(counts), np.int16)
    for group in np.lexsort((bits, -counts, rarity.min(axis=1))):
        lack = missing[:, rarest[group]] / np.maximum(shares, 1e-12)
        lack[shares <= 0] = -np.inf
        codes[group] = int(np.lexsort((-missing[:, -1], -lack))[0])
        missing[codes[group]] -= weights[group]
    return codes


def _no_split_empty(
    codes: NDArray[np.int16], bits: NDArray[np.uint64], shares: NDArray[np.float64]
) -> NDArray[np.int16]:
    """Give every split that was asked for a group, as long as another has two."""
    for split in np.flatnonzero(shares > 0):
        if not (codes == split).any():
            largest = np.bincount(codes, minlength=len(shares)).argmax()
            members = np.flatnonzero(codes == largest)
            if len(members) > 1:
                codes[members[bits[members].argmax()]] = split
    return codes


@dataclass(frozen=True)
class Blocks:
    """One group cut in its own order: block k ends before `ends[k]`, and a gap of `guards[k]` samples follows."""

    ends: tuple[int, ...]
    guards: tuple[int, ...]

    def code(self, position: int) -> int:
        """The number of the block at a position, or −1 inside a gap."""
        for number, end in enumerate(self.ends):
            if position < end:
                return number
            if number + 1 < len(self.ends) and position < end + self.guards[number]:
                return -1
        return len(self.ends) - 1


def cut_in_order(expected: int, fractions: Mapping[str, float], guard: Callable[[int], int]) -> Blocks | None:
    """Blocks for one group of about `expected` samples; None when it is too short to leave every block a sample.

    `guard(position)` says how many samples from a position on are too close to those before it.
    """
    shares = list(fractions.values())
    if len(shares) < 2:
        return None
    ends: list[int] = []
    guards: list[int] = []
    position = 0
    for number, share in enumerate(shares[:-1]):
        wanted = position + round((expected - position) * share / sum(shares[number:]))
        cut = _best_cut(wanted, position, expected, guard)
        if cut is None:
            return None
        ends.append(cut)
        guards.append(guard(cut))
        position = cut + guards[-1]
    return Blocks((*ends, expected), (*guards, 0))


def _best_cut(wanted: int, start: int, stop: int, guard: Callable[[int], int]) -> int | None:
    """The place near `wanted` where moving the cut and the gap behind it cost the fewest samples together."""
    reach = min((stop - start) // 4, MOST_MOVED)
    near = range(max(start + 1, wanted - reach), min(stop - 1, wanted + reach) + 1)
    costs = {cut: abs(cut - wanted) + gap for cut in near if cut + (gap := guard(cut)) < stop}
    return min(costs, key=lambda cut: (costs[cut], cut), default=None)
