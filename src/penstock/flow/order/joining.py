"""Several orders, one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.errors import RecipeError
from penstock.flow.order.draws import Draws, Numbers, Order
from penstock.flow.order.grouping import groups
from penstock.flow.order.mixing import gathered
from penstock.flow.order.plain import finite_length


@dataclass(frozen=True)
class Joined:
    """Each member completely, then the next one; only the last may be without end."""

    orders: tuple[Order, ...]

    def __post_init__(self) -> None:
        if not self.orders:
            raise RecipeError("concat([]): expected one flow or more.")
        for order in self.orders[:-1]:
            finite_length(order, "concat() with another flow after it")

    @property
    def length(self) -> int | None:
        last = self.orders[-1].length
        return None if last is None else int(self._starts()[-1]) + last

    def draws(self, epochs: Numbers, positions: Numbers) -> Draws:
        starts = self._starts()
        members = np.searchsorted(starts, positions, side="right") - 1
        parts = [
            (places, self.orders[member].draws(epochs[places], positions[places] - starts[member]))
            for member, places in groups(members)
        ]
        return gathered(len(positions), parts)

    def _starts(self) -> Numbers:
        lengths = [finite_length(order, "concat()") for order in self.orders[:-1]]
        return np.cumsum([0, *lengths], dtype=np.int64)
