"""The plain orders: all, some, shuffled, a part of them, and again and again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.errors import RecipeError
from penstock.flow.order.draws import Draws, Numbers, Order
from penstock.flow.order.grouping import groups
from penstock.flow.order.permuting import permuted
from penstock.seeds import sample_bits

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
            raise RecipeError(f"repeat(times={self.times}): expected 1 or more, or None for no end.")
        if self.times is None and self.inner.length == 0:
            raise RecipeError(
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
        raise RecipeError(f"{step} needs a flow with an end. Call it before repeat(), or put take(n) before it.")
    return order.length


def epoch_key(seed: int, step: int, epoch: int, number: int = 0, counter: int = 0) -> int:
    """A 64-bit key of an epoch of a step, or of something numbered in it."""
    return int(sample_bits(seed, step, np.array([epoch]), np.array([number]), counter)[0])
