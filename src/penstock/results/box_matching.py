"""Which prediction belongs to which true box: at most one each, so that the shared area of all pairs is the largest.

This is the assignment that the Hungarian method finds, image by image. Boxes share area with few others, so it is found
without a matrix: pairs that no other assignment can better are taken at once, for all images together; what
remains is settled row by row with shortest augmenting paths.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from penstock.geometry.overlaps import BoxSet, Numbers, Pairs, Reals, iou_of, overlapping

NOBODY = -1


class Overlaps(NamedTuple):
    """Every pair of a prediction (first) and a true box (second) of one image that share area, with their IoU."""

    pairs: Pairs
    iou: Reals
    prediction_count: int
    truth_count: int


def overlaps_of(predictions: BoxSet, truth: BoxSet) -> Overlaps:
    """The overlaps of predictions and truth; groups are images."""
    portions = list(overlapping(predictions, truth))
    none = Pairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    pairs = Pairs(*(np.concatenate(columns) for columns in zip(none, *portions, strict=True)))
    return Overlaps(pairs, iou_of(pairs, predictions.areas, truth.areas), len(predictions), len(truth))


def match(overlaps: Overlaps, *, iou: float) -> Numbers:
    """For each true box the prediction that it is matched with, −1 where none is or their IoU is not above `iou`."""
    pairs = overlaps.pairs
    chosen = assign(pairs.second, pairs.first, pairs.shared, overlaps.truth_count, overlaps.prediction_count)
    matched = np.full(overlaps.truth_count, NOBODY, np.int64)
    good = chosen[overlaps.iou[chosen] > iou]
    matched[pairs.second[good]] = pairs.first[good]
    return matched


def assign(rows: Numbers, columns: Numbers, weights: Reals, row_count: int, column_count: int) -> Numbers:
    """The numbers of the edges, at most one for each row and column, whose weights have the largest sum."""
    open_edges = np.arange(len(weights))
    chosen = []
    while len(open_edges):
        taken = open_edges[_dominant(rows[open_edges], columns[open_edges], weights[open_edges])]
        if not len(taken):
            break
        chosen.append(taken)
        row_done, column_done = np.zeros(row_count, bool), np.zeros(column_count, bool)
        row_done[rows[taken]], column_done[columns[taken]] = True, True
        open_edges = open_edges[~(row_done[rows[open_edges]] | column_done[columns[open_edges]])]
    order = open_edges[np.lexsort((columns[open_edges], rows[open_edges]))]
    chosen.append(order[_AugmentingPaths(rows[order], columns[order], weights[order]).solve()])
    return np.sort(np.concatenate(chosen))


def _dominant(rows: Numbers, columns: Numbers, weights: Reals) -> Numbers:
    """Edges that weigh at least as much as the best other edge of their row and of their column together.

    Whatever an assignment has in place of such an edge can be exchanged for it without loss.
    """
    best_of_row, second_of_row = _best_two(rows, weights)
    best_of_column, second_of_column = _best_two(columns, weights)
    is_row_best = best_of_row[rows] == np.arange(len(rows))
    is_column_best = best_of_column[columns] == np.arange(len(rows))
    dominant = is_row_best & is_column_best & (weights >= second_of_row[rows] + second_of_column[columns])
    return np.flatnonzero(dominant)


def _best_two(ends: Numbers, weights: Reals) -> tuple[Numbers, Reals]:
    """For each row (or column) its heaviest edge, the first of equal ones, and the weight of its second."""
    count = int(ends.max()) + 1
    order = np.lexsort((np.arange(len(ends)), -weights, ends))
    sorted_ends = ends[order]
    is_first = np.diff(sorted_ends, prepend=-1) != 0
    best = np.full(count, NOBODY, np.int64)
    best[sorted_ends[is_first]] = order[is_first]
    follows = np.flatnonzero(is_first[:-1] & ~is_first[1:]) + 1
    second = np.zeros(count)
    second[sorted_ends[follows]] = weights[order[follows]]
    return best, second


class _AugmentingPaths:
    """The heaviest assignment over sparse edges: rows come one by one, and each pushes others aside where that pays.

    Prices make it cheap: row_price + column_price is at least the weight of every edge, and equal on chosen ones. A
    row may also go without a column, for what its price is then.
    """

    def __init__(self, rows: Numbers, columns: Numbers, weights: Reals) -> None:
        """Edges sorted by row."""
        self.rows: list[int] = rows.tolist()
        self.columns: list[int] = columns.tolist()
        self.weights: list[float] = weights.tolist()
        found, starts, counts = np.unique(rows, return_index=True, return_counts=True)
        stretches = zip(found.tolist(), starts.tolist(), (starts + counts).tolist(), strict=True)
        self.edges_of: dict[int, range] = {row: range(start, stop) for row, start, stop in stretches}
        self.row_price = {row: max(self.weights[edge] for edge in edges) for row, edges in self.edges_of.items()}
        self.column_price = dict.fromkeys(self.columns, 0.0)
        self.row_in: dict[int, int] = {}  # by column
        self.edge_chosen: dict[int, int] = {}  # by row

    def solve(self) -> Numbers:
        for row in self.edges_of:
            way = self._cheapest_way(row)
            self._adjust_prices(way)
            self._move(way)
        return np.array(sorted(self.edge_chosen.values()), np.int64)

    def _cheapest_way(self, start: int) -> _Way:
        """The cheapest way to a free column, or to a row that then goes without one."""
        way = _Way(start, self.row_price[start])
        row: int | None = start
        while row is not None:
            self._look_from(way, row)
            row = self._step(way)
        return way

    def _look_from(self, way: _Way, row: int) -> None:
        so_far, price = way.row_cost[row], self.row_price[row]
        for edge in self.edges_of[row]:
            column = self.columns[edge]
            if column not in way.column_cost:
                slack = price + self.column_price[column] - self.weights[edge]
                heapq.heappush(way.waiting, (so_far + max(slack, 0.0), column, edge))

    def _step(self, way: _Way) -> int | None:
        """Go to the next column, and to the row that has it; None where the way ends."""
        while way.waiting and way.waiting[0][0] < way.cost:
            cost, column, edge = heapq.heappop(way.waiting)
            if column in way.column_cost:
                continue
            way.column_cost[column], way.edge_to[column] = cost, edge
            row = self.row_in.get(column)
            if row is None:
                way.cost, way.free_column = cost, column
                return None
            way.row_cost[row] = cost
            if cost + self.row_price[row] < way.cost:
                way.cost, way.loser = cost + self.row_price[row], row
            return row
        return None

    def _adjust_prices(self, way: _Way) -> None:
        for row, cost in way.row_cost.items():
            self.row_price[row] -= way.cost - cost
        for column, cost in way.column_cost.items():
            self.column_price[column] += way.cost - cost

    def _move(self, way: _Way) -> None:
        """Walk back from the end: each row takes the column that the way went to from it."""
        column = way.free_column
        if column is None:
            if way.loser == way.start:
                return
            column = self.columns[self.edge_chosen.pop(way.loser)]
        row = None
        while row != way.start:
            edge = way.edge_to[column]
            row = self.rows[edge]
            before = self.edge_chosen.get(row)
            self.edge_chosen[row], self.row_in[column] = edge, row
            if before is not None:
                column = self.columns[before]


class _Way:
    """A search from one row: what it costs to reach rows and columns, and where it may end."""

    def __init__(self, start: int, price: float) -> None:
        self.start, self.loser = start, start
        self.cost = price
        self.row_cost: dict[int, float] = {start: 0.0}
        self.column_cost: dict[int, float] = {}
        self.edge_to: dict[int, int] = {}
        self.waiting: list[tuple[float, int, int]] = []
        self.free_column: int | None = None
