"""Orders: which sample stands at each position of an epoch. Pure functions, without a list of samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import isqrt
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.seeds import permutation, random_bits, sample_bits

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


# Equal numbers of an array taken together, for functions that are vectorised over all else.


def groups(values: Numbers) -> Iterator[tuple[int, slice | Numbers]]:
    """Each distinct value once, with what selects its places in the array."""
    if not len(values):
        return
    if (values == values[0]).all():  # a range of positions rarely meets the end of an epoch
        yield int(values[0]), slice(None)
        return
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.diff(values[order])) + 1
    for places in np.split(order, starts):
        yield int(values[places[0]]), places


# A shuffle without a list: where each position of 0..length-1 goes, computed for itself.
#
# A number is written as row and column of a grid that is just large enough. Eight times, in turns, the row is moved
# by a hash of the column and the column by a hash of the row: a Feistel network, which can always be undone, so no
# two numbers meet. The few that leave 0..length-1 (the last row may not be full) go through it again until they are
# back inside.
#
# What is computed here is part of every saved state: the constants never change.


LISTED_BELOW = 1_000  # so few numbers leave eight rounds too little room, and a list of them is cheap
_ROUNDS = 8
_BLOCK = 16_384  # four buffers of it stay in a core's own cache
_HALF = np.uint64(32)
_FIRST = np.uint64(0xD6E8FEB86659FD93)
_SECOND = np.uint64(0xA0761D6478BD642F)

Words = NDArray[np.uint64]


def permuted(positions: Numbers, length: int, key: int) -> Numbers:
    """Where a shuffle of 0..length-1, named by a 64-bit key, sends these positions; for lengths up to 2⁶²."""
    if length < LISTED_BELOW:
        return _listed(length, key)[positions]
    network = _network(length, key)
    moved = np.empty(len(positions), np.int64)
    for start in range(0, len(positions), _BLOCK):
        block = positions[start : start + _BLOCK].astype(np.uint64)
        moved[start : start + _BLOCK] = _walked(network, block, length)
    return moved


@lru_cache(maxsize=64)
def _listed(length: int, key: int) -> Numbers:
    listed = permutation(key, length)
    listed.setflags(write=False)
    return listed


class _Network(NamedTuple):
    """A grid of rows × columns, and a key for each round."""

    rows: np.uint64
    columns: np.uint64
    keys: Words


@lru_cache(maxsize=64)
def _network(length: int, key: int) -> _Network:
    rows = isqrt(length - 1) + 1
    columns = -(-length // rows)  # less than one row too many, so that hardly a number walks twice
    return _Network(np.uint64(rows), np.uint64(columns), random_bits(key, np.arange(_ROUNDS)))


def _walked(network: _Network, values: Words, length: int) -> Words:
    """Through the network, and again for those that came out beyond the length."""
    values = _through(network, values)
    while len(outside := np.flatnonzero(values >= length)):
        values[outside] = _through(network, values[outside])
    return values


def _through(network: _Network, values: Words) -> Words:
    row = values // network.columns
    column = values - row * network.columns
    scratch = np.empty_like(row), np.empty_like(row)
    for first, second in zip(network.keys[::2], network.keys[1::2], strict=True):
        _move(row, network.rows, column, first, *scratch)
        _move(column, network.columns, row, second, *scratch)
    return row * network.columns + column


def _move(moved: Words, size: np.uint64, by: Words, key: np.uint64, bits: Words, shifted: Words) -> None:
    """Add a hash of `by` and the key, below size, to `moved`, modulo size; in place, because memory is the cost."""
    np.bitwise_xor(by, key, out=bits)
    np.multiply(bits, _FIRST, out=bits)
    np.right_shift(bits, _HALF, out=shifted)
    np.bitwise_xor(bits, shifted, out=bits)
    np.multiply(bits, _SECOND, out=bits)
    np.right_shift(bits, _HALF, out=bits)
    np.multiply(bits, size, out=bits)
    np.right_shift(bits, _HALF, out=bits)
    np.add(moved, bits, out=moved)
    np.subtract(moved, size, out=bits)  # wraps to a huge number where moved is below size already
    np.minimum(moved, bits, out=moved)


# The plain orders: all, some, shuffled, a part of them, and again and again.


_MEMBER_SHIFT = np.uint64(48)  # members stand above every index, so that equal indices of two sources differ in key


@dataclass(frozen=True)
class Everything:
    """Every sample of one source in its own order; `member` is the source's number where several are mixed."""

    length: int
    member: int = 0

    def draws(self, epochs: Numbers, positions: Numbers) -> Draws:
        keys = positions.astype(np.uint64) ^ (np.uint64(self.member) << _MEMBER_SHIFT)
        return Draws(np.full(len(positions), self.member, np.int64), positions, keys, epochs)


@dataclass(frozen=True, eq=False)
class Picked:
    """Some positions of an order, each at most once: `indices` says which, and in which order."""

    inner: Order
    indices: NDArray[np.integer]

    @property
    def length(self) -> int:
        return len(self.indices)

    def draws(self, epochs: Numbers, positions: Numbers) -> Draws:
        return self.inner.draws(epochs, self.indices[positions].astype(np.int64))


@dataclass(frozen=True)
class Shuffled:
    """Every position exactly once, in another random order for each epoch."""

    inner: Order
    seed: int
    step: int

    def __post_init__(self) -> None:
        finite_length(self.inner, "shuffle()")

    @property
    def length(self) -> int:
        return finite_length(self.inner, "shuffle()")

    def draws(self, epochs: Numbers, positions: Numbers) -> Draws:
        shuffled = np.empty(len(positions), np.int64)
        for epoch, places in groups(epochs):
            shuffled[places] = permuted(positions[places], self.length, epoch_key(self.seed, self.step, epoch))
        return self.inner.draws(epochs, shuffled)


@dataclass(frozen=True)
class Sliced:
    """The positions from start up to stop of each epoch; stop None means up to the end."""

    inner: Order
    start: int
    stop: int | None = None

    @property
    def length(self) -> int | None:
        ends = [end for end in (self.inner.length, self.stop) if end is not None]
        return max(0, min(ends) - self.start) if ends else None

    def draws(self, epochs: Numbers, positions: Numbers) -> Draws:
        return self.inner.draws(epochs, positions + self.start)


@dataclass(frozen=True)
class Repeated:
    """An order several times in each epoch, each time as another epoch of it; times None means without end.

    Without end there is one outer epoch only, number 0.
    """

    inner: Order
    times: int | None = None

    def __post_init__(self) -> None:
        if self.times is not None and self.times < 1:
            raise OptionError(f"repeat(times={self.times}): expected 1 or more, or None for no end.")
        if self.times is None and self.inner.length == 0:
            raise OptionError(
                "repeat() without end has no samples to repeat. Loosen the where, filter, take or skip before it."
            )

    @property
    def length(self) -> int | None:
        inner = self.inner.length
        return None if inner is None or self.times is None else inner * self.times

    def draws(self, epochs: Numbers, positions: Numbers) -> Draws:
        inner = self.inner.length
        if not inner:  # without end already, or no positions at all
            return self.inner.draws(epochs, positions)
        passes, inside = np.divmod(positions, inner)
        return self.inner.draws(epochs * (self.times or 1) + passes, inside)


def finite_length(order: Order, step: str) -> int:
    """The length of an order that a step needs to have an end."""
    if order.length is None:
        raise OptionError(f"{step} needs a flow with an end. Call it before repeat(), or put take(n) before it.")
    return order.length


def epoch_key(seed: int, step: int, epoch: int, number: int = 0, counter: int = 0) -> int:
    """A 64-bit key of an epoch of a step, or of something numbered in it."""
    return int(sample_bits(seed, step, np.array([epoch]), np.array([number]), counter)[0])


# A shuffle for slow disks: whole blocks (shards) in random order, samples shuffled among a few blocks at a time.
#
#     blocks in random order   4 0 6 │ 2 7 1 │ 5 3
#     windows of up to three   ─────   ─────   ───   within each, all samples in random order
#
# Only the blocks of one window are needed at a time. The windows are made equally large, so that none stays half
# empty.


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
            raise OptionError(f"shuffle(window={self.window}): expected 1 shard or more.")
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
