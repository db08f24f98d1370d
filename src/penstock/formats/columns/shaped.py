"""Values whose size differs from row to row, stored flat with a second array that has their shapes.

boxes        all rows one after another, or each row flat          boxes_shape   (n, 4) of each row
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.formats.columns.tables import Column, Holds, Numbers, Places
from penstock.samples.store import objects

ENDING = "_shape"


class ShapedColumn:
    """Rows of a flat column in their shapes."""

    def __init__(self, flat: Column, shapes: NDArray[np.int64], is_joined: bool) -> None:
        last = shapes[:, -1:]
        width = int(last[0, 0]) if shapes.shape[1] > 1 and len(last) and (last == last[0]).all() else None
        self.holds = Holds("array", flat.holds.dtype, (*(None,) * (shapes.shape[1] - 1), width))
        self._flat, self._shapes = flat, shapes
        self._ends = np.cumsum(shapes.prod(axis=1))
        self._values = flat.flat() if is_joined else None

    def value(self, row: int) -> Any:
        shape = self._shapes[row]
        if self._values is None:
            return np.asarray(self._flat.value(row)).reshape(shape)
        return self._values[self._ends[row] - shape.prod() : self._ends[row]].reshape(shape)

    def values(self, rows: Numbers) -> NDArray[Any] | None:
        return None

    def whole(self) -> NDArray[Any]:
        return objects([self.value(row) for row in range(len(self._shapes))])

    def flat(self) -> NDArray[Any]:
        return self._flat.flat()

    def places(self, rows: Numbers) -> Places | None:
        return None


def with_shapes(columns: Mapping[str, tuple[int, Column]]) -> dict[str, tuple[int, Column]]:
    """Name → rows and column, where arrays of shapes have gone into the columns that they belong to."""
    found = dict(columns)
    for name in [name for name in columns if f"{name}{ENDING}" in columns]:
        (rows, flat), (count, described) = columns[name], columns[f"{name}{ENDING}"]
        if len(described.holds.shape) != 1 or not described.holds.dtype.startswith(("int", "uint")):
            continue
        shapes = np.asarray(described.whole(), np.int64)
        is_joined = None not in flat.holds.shape
        numbers = rows * int(np.prod([side or 1 for side in flat.holds.shape]))
        if (is_joined and int(shapes.prod(axis=1).sum()) != numbers) or (not is_joined and rows != count):
            continue
        found[name] = (count, ShapedColumn(flat, shapes, is_joined))
        del found[f"{name}{ENDING}"]
    return found
