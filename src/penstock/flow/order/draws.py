"""What a range of positions of an epoch stands for, and the protocol of everything that decides it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


class Draws(NamedTuple):
    """One entry for each position: which sample, and what its randomness follows from."""

    member: Numbers  # which source, where several are mixed; else 0
    index: Numbers  # type: ignore[assignment]  # which sample of that source; shadows tuple.index
    key: NDArray[np.uint64]  # the index; where a sample may come twice in an epoch, a number of this draw alone
    epoch: Numbers  # which pass over that source: random steps differ from pass to pass

    def part(self, start: int, stop: int) -> Draws:
        """The entries from start to stop."""
        rows = slice(start, stop)
        return Draws(self.member[rows], self.index[rows], self.key[rows], self.epoch[rows])

    def at(self, places: Numbers) -> Draws:
        """The entries at these places."""
        return Draws(self.member[places], self.index[places], self.key[places], self.epoch[places])


class Order(Protocol):
    """Which sample stands at each position of an epoch: a pure function, computed for many positions at once."""

    @property
    def length(self) -> int | None:
        """How many positions an epoch has; None where it has no end."""
        ...

    def draws(self, epochs: Numbers, positions: Numbers) -> Draws:
        """What stands at these positions of these epochs (two arrays of one length)."""
        ...
