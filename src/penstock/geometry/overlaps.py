"""Which boxes overlap, found in a grid: time and memory follow the boxes, not their square.

Boxes are sorted into levels by their longer side. Two levels meet in a grid whose cells are as large as the larger of
them, so that a box has to look into a few rows of cells only, whatever the mix of sizes. In each row the others are
sorted by where they begin, and what may overlap is one stretch of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.wording import counted

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]

# Pairs that are looked at together: some megabytes of temporary arrays, which stay in the processor's cache.
PAIRS_AT_ONCE = 1 << 17
# Cells are split so finely along x, to leave out more of what cannot overlap.
COLUMNS_PER_CELL = 4
# Bits of a sort key: rows and columns share what the groups leave.
KEY_BITS = 62


class Pairs(NamedTuple):
    """Boxes that share area: numbers into the first and the second set, and the area that they share."""

    first: Numbers
    second: Numbers
    shared: Reals


class BoxSet:
    """Boxes in float64, each in a group; only boxes of one group can overlap."""

    def __init__(self, boxes: NDArray[np.floating], groups: NDArray[np.integer] | None = None) -> None:
        self.boxes: Reals = np.ascontiguousarray(boxes, np.float64).reshape(-1, 4)
        self.groups: Numbers = np.zeros(len(self.boxes), np.int64) if groups is None else np.asarray(groups, np.int64)
        if self.groups.shape != (len(self.boxes),):
            raise OptionError(f"there are {counted(len(self.boxes), 'box')} and {counted(self.groups.size, 'group')}.")
        if not np.isfinite(self.boxes).all():
            raise OptionError("a box has a coordinate that is no finite number.")

    def __len__(self) -> int:
        return len(self.boxes)

    @property
    def areas(self) -> Reals:
        sizes = np.maximum(self.boxes[:, 2:] - self.boxes[:, :2], 0)
        areas: Reals = sizes[:, 0] * sizes[:, 1]
        return areas

    def taken(self, numbers: Numbers) -> BoxSet:
        """Some of the boxes."""
        return BoxSet(self.boxes[numbers], self.groups[numbers])


def overlapping(first: BoxSet, second: BoxSet, *, above_iou: float = 0.0) -> Iterator[Pairs]:
    """Every pair of boxes of one group that shares area, in portions; no pair comes twice.

    Pairs of boxes so different in size that their IoU cannot be above `above_iou` may be left out.
    """
    second_levels = _levels(second)
    for first_level, askers in _levels(first).items():
        for second_level, others in second_levels.items():
            if _largest_iou(first_level, second_level) > above_iou:
                grid = _Grid.over(askers, others, 2.0 ** max(first_level, second_level))
                yield from _looking_around(grid, grid.sorted(askers), grid.sorted(others)).pairs()


def overlapping_within(boxes: BoxSet, *, above_iou: float = 0.0) -> Iterator[Pairs]:
    """The same for boxes of one set: each pair once, in either order."""
    levels = _levels(boxes)
    for level, members in levels.items():
        grid = _Grid.over(members, members, 2.0**level)
        yield from _looking_ahead(grid, grid.sorted(members)).pairs()
        for larger, others in levels.items():
            if larger > level and _largest_iou(level, larger) > above_iou:
                grid = _Grid.over(members, others, 2.0**larger)
                yield from _looking_around(grid, grid.sorted(members), grid.sorted(others)).pairs()


def iou_of(pairs: Pairs, first_areas: Reals, second_areas: Reals) -> Reals:
    """Intersection over union of each pair."""
    union = first_areas[pairs.first] + second_areas[pairs.second] - pairs.shared
    ratio: Reals = pairs.shared / union
    return ratio


@dataclass(frozen=True)
class _Members:
    """Boxes of one level, column by column, with their numbers in the set that they are of."""

    numbers: Numbers
    groups: Numbers
    x1: Reals
    y1: Reals
    x2: Reals
    y2: Reals

    @classmethod
    def of(cls, boxes: BoxSet, numbers: Numbers) -> _Members:
        return cls(numbers, boxes.groups[numbers], *np.ascontiguousarray(boxes.boxes[numbers].T))

    def taken(self, order: Numbers) -> _Members:
        x1, y1, x2, y2 = (column[order] for column in (self.x1, self.y1, self.x2, self.y2))
        return _Members(self.numbers[order], self.groups[order], x1, y1, x2, y2)


def _levels(boxes: BoxSet) -> dict[int, _Members]:
    """The boxes with area by the power of two that their longer side fits into."""
    sides = boxes.boxes[:, 2:] - boxes.boxes[:, :2]
    solid = np.flatnonzero((sides > 0).all(axis=1))
    exponents = np.frexp(sides[solid].max(axis=1))[1]
    return {int(level): _Members.of(boxes, solid[exponents == level]) for level in np.unique(exponents)}


def _largest_iou(first_level: int, second_level: int) -> float:
    """What the IoU stays below: the larger box is longer than what can be shared of it."""
    return 2.0 ** (1 - abs(first_level - second_level))


@dataclass(frozen=True)
class _Looks:
    """For each look into a row of cells who asks, and the stretch of the others that may overlap."""

    askers: _Members
    others: _Members
    asking: Numbers
    starts: Numbers
    counts: Numbers

    def pairs(self) -> Iterator[Pairs]:
        ends = np.cumsum(self.counts)
        portions = np.flatnonzero(np.diff(ends // PAIRS_AT_ONCE)) + 1
        for start, stop in zip([0, *portions.tolist()], [*portions.tolist(), len(ends)], strict=True):
            if stop > start:
                yield self._portion(slice(start, stop))

    def _portion(self, looks: slice) -> Pairs:
        counts, asking, askers, others = self.counts[looks], self.asking[looks], self.askers, self.others
        shifts = self.starts[looks] - (np.cumsum(counts) - counts)
        other = np.arange(int(counts.sum())) + np.repeat(shifts, counts)
        heights = np.minimum(np.repeat(askers.y2[asking], counts), others.y2[other])
        heights -= np.maximum(np.repeat(askers.y1[asking], counts), others.y1[other])
        level_with = np.flatnonzero(heights > 0)
        asker, other = np.repeat(asking, counts)[level_with], other[level_with]
        widths = np.minimum(askers.x2[asker], others.x2[other]) - np.maximum(askers.x1[asker], others.x1[other])
        sharing = np.flatnonzero(widths > 0)
        shared = widths[sharing] * heights[level_with[sharing]]
        return Pairs(askers.numbers[asker[sharing]], others.numbers[other[sharing]], shared)


@dataclass(frozen=True)
class _Sorted:
    """Members in the order of their keys."""

    members: _Members
    keys: Numbers


def _looking_around(grid: _Grid, askers: _Sorted, others: _Sorted) -> _Looks:
    """Every box looks at all of the others that begin near enough before it, or inside of it."""
    mine, theirs = askers.members, others.members
    reach_x, reach_y = float((theirs.x2 - theirs.x1).max()), float((theirs.y2 - theirs.y1).max())
    asking, rows = _row_by_row(grid.row(mine.y1 - reach_y), grid.row(mine.y2))
    low = grid.keys(mine.groups[asking], rows, grid.column(mine.x1 - reach_x)[asking])
    high = grid.keys(mine.groups[asking], rows, grid.column(mine.x2)[asking])
    return _looks(mine, others, asking, np.searchsorted(others.keys, low), high)


def _looking_ahead(grid: _Grid, own: _Sorted) -> _Looks:
    """Every box looks at those of its own level that stand after it, so that each pair is met once."""
    mine = own.members
    reach_x = float((mine.x2 - mine.x1).max())
    asking, rows = _row_by_row(grid.row(mine.y1), grid.row(mine.y2))
    in_own_row = rows == grid.row(mine.y1)[asking]
    low = grid.keys(mine.groups[asking], rows, grid.column(mine.x1 - reach_x)[asking])
    high = grid.keys(mine.groups[asking], rows, grid.column(mine.x2)[asking])
    starts = np.where(in_own_row, asking + 1, np.searchsorted(own.keys, low))
    return _looks(mine, own, asking, starts, high)


def _looks(mine: _Members, others: _Sorted, asking: Numbers, starts: Numbers, high: Numbers) -> _Looks:
    counts = np.searchsorted(others.keys, high, side="right") - starts
    some = np.flatnonzero(counts > 0)
    return _Looks(mine, others.members, asking[some], starts[some], counts[some])


def _row_by_row(first_row: Numbers, last_row: Numbers) -> tuple[Numbers, Numbers]:
    """Each row of cells that a box looks into, with the number of the box."""
    counts = last_row - first_row + 1
    asking = np.repeat(np.arange(len(counts)), counts)
    return asking, np.arange(len(asking)) + np.repeat(first_row - (np.cumsum(counts) - counts), counts)


@dataclass(frozen=True)
class _Grid:
    """Rows and columns of cells over all boxes; `row` and `column` never fall where a coordinate grows."""

    x: float
    y: float
    cell_width: float
    cell_height: float
    rows: int
    columns: int
    first_group: int

    @classmethod
    def over(cls, first: _Members, second: _Members, cell: float) -> _Grid:
        left, top = min(first.x1.min(), second.x1.min()), min(first.y1.min(), second.y1.min())
        width = float(max(first.x2.max(), second.x2.max()) - left)
        height = float(max(first.y2.max(), second.y2.max()) - top)
        first_group = min(int(first.groups.min()), int(second.groups.min()))
        group_count = max(int(first.groups.max()), int(second.groups.max())) - first_group + 1
        # Cells grow where there would be more than a key can number.
        most = 2 ** ((KEY_BITS - group_count.bit_length()) // 2) - 2
        cell_width, cell_height = max(cell / COLUMNS_PER_CELL, width / most), max(cell, height / most)
        rows, columns = int(height / cell_height) + 2, int(width / cell_width) + 2
        return cls(float(left), float(top), cell_width, cell_height, rows, columns, first_group)

    def row(self, y: Reals) -> Numbers:
        return np.clip((y - self.y) / self.cell_height, 0, self.rows - 1).astype(np.int64)

    def column(self, x: Reals) -> Numbers:
        return np.clip((x - self.x) / self.cell_width, 0, self.columns - 1).astype(np.int64)

    def keys(self, groups: Numbers, rows: Numbers, columns: Numbers) -> Numbers:
        keys: Numbers = ((groups - self.first_group) * self.rows + rows) * self.columns + columns
        return keys

    def sorted(self, members: _Members) -> _Sorted:
        """Neighbours beside one another: by row of cells, then by column."""
        keys = self.keys(members.groups, self.row(members.y1), self.column(members.x1))
        order = np.argsort(keys)
        return _Sorted(members.taken(order), keys[order])
