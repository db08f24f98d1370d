"""A shuffle for slow disks: whole blocks (shards) in random order, samples shuffled among a few blocks at a time.

    blocks in random order   4 0 6 │ 2 7 1 │ 5 3
    windows of up to three   ─────   ─────   ───   within each, all samples in random order

Only the blocks of one window are needed at a time. The windows are made equally large, so that none stays half empty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.errors import RecipeError
from penstock.flow.order.draws import Draws, Numbers, Order
from penstock.flow.order.grouping import groups
from penstock.flow.order.permuting import permuted
from penstock.flow.order.plain import epoch_key, finite_length

_OF_BLOCKS, _OF_WINDOW = 0, 1  # counters of the keys


@dataclass(frozen=True, eq=False)
class WindowShuffled:
    """Every position exactly once: blocks in another random order for each epoch, shuffled within windows of them.

    `block_starts` are the positions of the inner order at which its blocks start, ascending from 0; the last block
    reaches to the end. Memory grows with the number of blocks alone.
    """

    inner: Order
    block_starts: Numbers
    window: int
    seed: int
    step: int

    def __post_init__(self) -> None:
        if self.window < 1:
            raise RecipeError(f"shuffle(window={self.window}): expected 1 shard or more.")
        finite_length(self.inner, "shuffle(window=...)")

    @property
    def length(self) -> int:
        return finite_length(self.inner, "shuffle(window=...)")

    @property
    def mixing(self) -> float:
        """See mixing_quality."""
        return mixing_quality(self._block_lengths(), self.window)

    def draws(self, epochs: Numbers, positions: Numbers) -> Draws:
        shuffled = np.empty(len(positions), np.int64)
        for epoch, places in groups(epochs):
            shuffled[places] = self._of_epoch(epoch, positions[places])
        return self.inner.draws(epochs, shuffled)

    def _of_epoch(self, epoch: int, positions: Numbers) -> Numbers:
        """The inner positions that stand at these positions of one epoch."""
        count = len(self.block_starts)
        blocks = permuted(np.arange(count), count, epoch_key(self.seed, self.step, epoch, 0, _OF_BLOCKS))
        starts = np.concatenate([[0], np.cumsum(self._block_lengths()[blocks])])
        moved = self._within_windows(epoch, positions, starts[window_limits(count, self.window)])
        slots = np.searchsorted(starts, moved, side="right") - 1
        moved += self.block_starts[blocks[slots]] - starts[slots]
        return moved

    def _within_windows(self, epoch: int, positions: Numbers, limits: Numbers) -> Numbers:
        moved = np.empty(len(positions), np.int64)
        for window, places in groups(np.searchsorted(limits, positions, side="right") - 1):
            start, stop = int(limits[window]), int(limits[window + 1])
            key = epoch_key(self.seed, self.step, epoch, window, _OF_WINDOW)
            moved[places] = permuted(positions[places] - start, stop - start, key) + start
        return moved

    def _block_lengths(self) -> Numbers:
        return np.diff(self.block_starts, append=self.length)


def window_limits(blocks: int, window: int) -> Numbers:
    """Where the windows start, counted in blocks, and the end; no window is larger than told, none much smaller."""
    windows = -(-blocks // window)
    return np.arange(windows + 1) * blocks // max(1, windows)


def mixing_quality(block_lengths: Numbers, window: int) -> float:
    """The expected share of all samples that stand in one window with a sample: 1 for a shuffle of everything.

    A batch is a random choice from this share of the data. At 0.01 it sees one hundredth of the data; that is good
    where the blocks are alike, and bad where each holds one class. Which blocks meet changes with each epoch.
    """
    lengths = np.asarray(block_lengths, np.float64)
    count, total = len(lengths), lengths.sum()
    if count < 2 or not total:
        return 1.0
    squares = (lengths**2).sum()
    sizes = np.diff(window_limits(count, window)).astype(np.float64)
    alone = (sizes / count).sum() * squares
    paired = (sizes * (sizes - 1) / (count * (count - 1))).sum() * (total**2 - squares)
    return float((alone + paired) / total**2)
