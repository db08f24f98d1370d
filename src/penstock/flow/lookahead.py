"""Cold data: the order is known ahead, so the system is asked for the bytes of the next batches in time."""

from __future__ import annotations

import numpy as np

from penstock.flow.budget import free_bytes
from penstock.flow.making.program import Program
from penstock.flow.order.batches import Schedule
from penstock.samples import Store

LOOKED_AT = 64  # samples whose pages are looked at to tell whether data is in memory
WARM = 0.98  # from this share on nothing is asked for
MOST_AHEAD = 256 * 2**20  # bytes; a disk of 2 GB/s reads them in an eighth of a second
SHARE_OF_MEMORY = 0.8  # a pack above this share of free memory gives its pages back


class Lookahead:
    """Asks for the bytes of batches before workers need them; does nothing where all is in memory already."""

    def __init__(self, program: Program, batches: Schedule, most_bytes: int) -> None:
        self._program, self._batches = program, batches
        self._most = min(most_bytes, MOST_AHEAD)
        self._next = 0
        self._asked: dict[int, int] = {}  # bytes by number of the batch
        self.is_active = any(_is_cold(leaf.source) for leaf in program.leaves)

    def reached(self, epoch: int, number: int) -> None:
        """Tasks of this batch go out now: ask for what comes after, within the byte limit."""
        if not self.is_active:
            return
        self._asked = {batch: size for batch, size in self._asked.items() if batch > number}
        self._next = max(self._next, number + 1)
        count = self._batches.count
        while sum(self._asked.values()) < self._most and (count is None or self._next < count):
            self._asked[self._next] = max(self._ask(epoch, self._next), 1)
            self._next += 1

    def _ask(self, epoch: int, number: int) -> int:
        dealt = self._batches.at(epoch, number)
        draws = self._program.draws(dealt.epoch, dealt.start, dealt.stop)
        total = 0
        for member in np.flatnonzero(np.bincount(draws.member)).tolist():
            base, indices, _ = self._program.leaves[member].source.images_at(draws.index[draws.member == member])
            total += base.will_need(indices)
        return total


def _is_cold(source: Store) -> bool:
    """Whether some of a source's bytes are on the disk and not in memory, by looking at a few."""
    if not len(source):
        return False
    some = np.linspace(0, len(source) - 1, min(LOOKED_AT, len(source))).astype(np.int64)
    base, indices, _ = source.images_at(some)
    return base.resident_share(indices) < WARM


def gives_back(source: Store) -> bool:
    """Whether pages are given back after use: where a pack is larger than memory."""
    base, _, _ = source.images_at(np.zeros(0, np.int64))
    return base.bytes is not None and base.bytes > free_bytes() * SHARE_OF_MEMORY
