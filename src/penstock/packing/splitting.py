"""From the options and a source to the split of every sample, decided before the first is packed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.packing.options import DEFAULT_SPLIT, PackOptions, parse_split
from penstock.packing.splits import GAP, Blocks, assign_splits, cut_in_order
from penstock.samples import Store
from penstock.samples.schema import ordered_names
from penstock.storage.writing.options import AUTO
from penstock.wording import counted

# A table of groups × classes beyond this would not fit in memory; the split is then not balanced by class.
MOST_COUNTS = 50_000_000


@dataclass(frozen=True)
class SplitPlan:
    """The split of each sample, or of each part; `how` says in words how it came about."""

    names: tuple[str, ...]
    codes: NDArray[np.int16]
    how: str
    blocks: Blocks | None = None

    def name(self, part: int, sample: int) -> str:
        """The split of a sample; for a source without parts, `part` is 0 and codes has one entry per sample."""
        if self.blocks is not None:
            code = self.blocks.code(sample)
            return GAP if code < 0 else self.names[code]
        return self.names[int(self.codes[part])]


def plan_splits(source: Store, options: PackOptions) -> SplitPlan:
    """Decide the split of every sample of a source with random access."""
    own = _own(source, "split") if options.split == AUTO else None
    if own is not None:
        return _by_column(own)
    fractions = _fractions(options)
    groups = _own(source, "group")
    if groups is None:
        groups = np.array([str(index) for index in range(len(source))])
    names, inverse = np.unique(groups.astype(str), return_inverse=True)
    if len(names) == 1 and len(fractions) > 1:
        return _in_order(len(source), fractions, source.guard)
    counts = np.bincount(inverse, minlength=len(names)).astype(np.int64)
    codes = assign_splits(names.tolist(), counts, _label_counts(source, inverse, len(names)), fractions, options.seed)
    return SplitPlan(tuple(fractions), codes[inverse], f"by group, {_in_words(fractions)}, seed {options.seed}")


def plan_part_splits(parts: Any, classes: int, options: PackOptions) -> SplitPlan:
    """Decide the split of every part of a source that streams."""
    own = [part.split for part in parts]
    if options.split == AUTO and own and all(own):
        return _by_column(np.array(own))
    fractions = _fractions(options)
    names, inverse = np.unique(np.array([part.group for part in parts]), return_inverse=True)
    if len(parts) == 1 and len(fractions) > 1:
        return _in_order(parts[0].expected, fractions, parts[0].guard)
    counts = np.bincount(inverse, [part.expected for part in parts], len(names)).astype(np.int64)
    label_counts = np.zeros((len(names), classes), np.int64)
    for part, group in zip(parts, inverse, strict=True):
        for label, count in part.label_counts.items():
            label_counts[group, label] += count
    codes = assign_splits(names.tolist(), counts, label_counts, fractions, options.seed)
    return SplitPlan(tuple(fractions), codes[inverse], f"by group, {_in_words(fractions)}, seed {options.seed}")


def _fractions(options: PackOptions) -> dict[str, float]:
    return parse_split(DEFAULT_SPLIT if options.split == AUTO else options.split)


def _in_words(fractions: dict[str, float]) -> str:
    return ", ".join(f"{name} {share:g}" for name, share in fractions.items())


def _by_column(values: NDArray[Any]) -> SplitPlan:
    names = ordered_names(sorted(set(values.astype(str).tolist())))
    if "" in names:
        raise OptionError(
            "the source names a split for some samples and none for others; fill it in, "
            "or pass split='train=0.8,val=0.2'."
        )
    numbers = {name: number for number, name in enumerate(names)}
    codes = np.array([numbers[str(value)] for value in values], np.int16)
    return SplitPlan(tuple(names), codes, "as the source says")


def _in_order(expected: int, fractions: dict[str, float], guard: Callable[[int], int]) -> SplitPlan:
    blocks = cut_in_order(expected, fractions, guard)
    first = next(iter(fractions))
    if blocks is None:
        how = f"one group, too short to divide: all in {first}"
        return SplitPlan(tuple(fractions), np.zeros(max(1, expected), np.int16), how)
    how = f"one group, cut in its own order, {_in_words(fractions)}"
    between = sum(blocks.guards)
    if not between:
        return SplitPlan(tuple(fractions), np.zeros(0, np.int16), how, blocks)
    how += f"; {counted(between, 'sample')} between the splits, too close to both, left in '{GAP}'"
    return SplitPlan((*fractions, GAP), np.zeros(0, np.int16), how, blocks)


def _own(source: Store, name: str) -> NDArray[Any] | None:
    """A column of a source that has such a column."""
    try:
        return source.column(name)
    except KeyError:
        return None


def _label_counts(source: Store, groups: NDArray[np.intp], group_count: int) -> NDArray[np.int64]:
    """How often each class occurs in each group; without columns where the source does not say."""
    if group_count * len(source.schema.classes) > MOST_COUNTS:
        return np.zeros((group_count, 0), np.int64)
    per_sample = source.label_counts()
    if per_sample is not None:
        counts = np.zeros((group_count, per_sample.shape[1]), np.int64)
        np.add.at(counts, groups, per_sample)
        return counts
    field = source.schema.label
    labels = _own(source, field.name) if field is not None else None
    if labels is None:
        return np.zeros((group_count, 0), np.int64)
    classes = len(source.schema.classes)
    known = labels >= 0
    counts = np.zeros((group_count, classes), np.int64)
    np.add.at(counts, (groups[known], labels[known]), 1)
    return counts
