"""Orders that choose by weights: several orders woven into one, and samples drawn with replacement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from itertools import compress
from math import gcd, isfinite, lcm
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock.errors import OptionError, one_of
from penstock.flow.order.orders import Draws, Numbers, Order, finite_length
from penstock.seeds import mixed, sample_uniforms

# Several orders woven into one by weights, on a fixed schedule in whole numbers.
#
# The first member takes its share of the positions, as evenly as it goes: it stands at position p where ⌊(p+1)·w/W⌋
# is larger than ⌊p·w/W⌋. What is left is numbered anew and split in the same way between the second member and the
# rest, and so on. So member and count at a position follow from the position alone, and the other way round.


_MOST_PARTS = 2**31  # products of two numbers below it fit 64 bits
_ROUNDED_PARTS = 2**30


@dataclass(frozen=True)
class Mixed:
    """Members in proportion to their weights, each in its own order; a weight of 0 leaves a member out.

    until="first" ends before the first position whose member has nothing left. until="all" ends when every member was
    seen completely; the shorter ones start again meanwhile, each time with their next epoch, so that every pass of
    every epoch differs. Members without end go on where they stopped, and never decide when the mix ends.
    """

    orders: tuple[Order, ...]
    weights: InitVar[Sequence[float]]
    until: Literal["first", "all"] = "first"
    shares: tuple[int, ...] = field(init=False)
    length: int | None = field(init=False)

    def __post_init__(self, weights: Sequence[float]) -> None:
        one_of("until", self.until, ("first", "all"))
        shares = integer_weights(weights, len(self.orders))
        for number, order in enumerate(self.orders):
            if shares[number] and order.length == 0:
                raise OptionError(f"mix: flow {number} has no samples. Leave it out, or give it weight 0.")
        object.__setattr__(self, "orders", tuple(compress(self.orders, shares)))
        object.__setattr__(self, "shares", tuple(filter(None, shares)))
        object.__setattr__(self, "length", self._length())

    def _length(self) -> int | None:
        lengths = [(member, order.length) for member, order in enumerate(self.orders) if order.length is not None]
        if self.until == "first":
            return min((occurrence(self.shares, member, length) for member, length in lengths), default=None)
        return max((occurrence(self.shares, member, length - 1) + 1 for member, length in lengths), default=None)

    def draws(self, epochs: Numbers, positions: Numbers) -> Draws:
        totals = counts(self.shares, self.length or 0)
        parts = [
            (places, _member_draws(order, total, epochs[places], local))
            for order, total, (places, local) in zip(
                self.orders, totals, scheduled(self.shares, positions), strict=True
            )
        ]
        return gathered(len(positions), parts)


def _member_draws(order: Order, total: int, epochs: Numbers, local: Numbers) -> Draws:
    """What a member gives at its own positions; `total` is how many it has in an epoch of the mix."""
    if order.length is None:
        return order.draws(np.zeros_like(epochs), epochs * total + local)
    passes = max(1, -(-total // order.length))
    passed, inside = np.divmod(local, order.length)
    return order.draws(epochs * passes + passed, inside)


def scheduled(shares: Sequence[int], positions: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
    """For each member, which of the positions are its own, and their number among all that are."""
    places, left = np.arange(len(positions)), sum(shares)
    for share in shares:
        before = _scaled(positions, share, left)
        own = _scaled(positions + 1, share, left) > before
        yield places[own], before[own]
        places, positions = places[~own], (positions - before)[~own]
        left -= share


def _scaled(positions: Numbers, share: int, total: int) -> Numbers:
    """⌊positions·share/total⌋ without a product that overflows."""
    whole, rest = np.divmod(positions, total)
    scaled: Numbers = whole * share + rest * share // total
    return scaled


def counts(shares: Sequence[int], length: int) -> list[int]:
    """How many of the first positions each member has."""
    found, left = [], sum(shares)
    for share in shares:
        found.append(length * share // left)
        length, left = length - found[-1], left - share
    return found


def occurrence(shares: Sequence[int], member: int, number: int) -> int:
    """The position at which a member stands for the time with this number (from 0): the schedule, undone."""
    left = sum(shares[member:])
    position = -(-(number + 1) * left // shares[member]) - 1
    for share in reversed(shares[:member]):
        rest, left = left, left + share
        position = position * left // rest
    return position


def gathered(length: int, parts: Iterable[tuple[slice | Numbers, Draws]]) -> Draws:
    """The draws of several orders, each at its places, as one."""
    member, index, epoch = np.empty((3, length), np.int64)
    whole = Draws(member, index, np.empty(length, np.uint64), epoch)
    for places, part in parts:
        for column, values in zip(whole, part, strict=True):
            column[places] = values
    return whole


def checked_shares(weights: Sequence[float] | None, count: int) -> tuple[float, ...]:
    """The weights of a mix as it is written; equal ones if none are given."""
    if weights is None:
        return (1.0,) * count
    try:
        shares = tuple(float(weight) for weight in weights)
    except (TypeError, ValueError) as error:
        kind = "a function" if callable(weights) else repr(weights)
        raise OptionError(f"mix(weights=…) takes a number for each flow, such as [3, 1], not {kind}.") from error
    _check(shares, count)
    return shares


def integer_weights(weights: Sequence[float], count: int) -> tuple[int, ...]:
    """Weights as whole numbers: exact as they are written in decimals where that is possible, else rounded to 2⁻³⁰."""
    _check(weights, count)
    written = [Fraction(repr(float(weight))) for weight in weights]
    common = lcm(*(weight.denominator for weight in written))
    exact = [int(weight * common) for weight in written]
    exact = [weight // gcd(*exact) for weight in exact]
    if sum(exact) <= _MOST_PARTS:
        return tuple(exact)
    return tuple(max(1, round(Fraction(weight, sum(exact)) * _ROUNDED_PARTS)) if weight else 0 for weight in exact)


def _check(weights: Sequence[float], count: int) -> None:
    if not count:
        raise OptionError("mix([]): expected one flow or more.")
    if len(weights) != count:
        raise OptionError(f"mix: expected {count} weights, one for each flow, got {len(weights)}.")
    wrong = [weight for weight in weights if not (isfinite(weight) and weight >= 0)]
    if wrong:
        raise OptionError(f"mix: a weight is a finite number of 0 or more, got {wrong[0]}.")
    if not any(weights):
        raise OptionError("mix: all weights are 0. Give at least one flow a weight.")


# Samples drawn with replacement, some more often than others.


NO_LABEL = -1


@dataclass(frozen=True, eq=False)
class Weighted:
    """`count` draws in each epoch, with replacement, each in proportion to the weights of the inner positions.

    The key of a draw follows from its position too: a sample that comes twice is augmented in two ways.
    """

    inner: Order
    weights: InitVar[ArrayLike]
    count: int
    seed: int
    step: int
    cumulative: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self, weights: ArrayLike) -> None:
        if self.count < 0:
            raise OptionError(f"sample(count={self.count}): expected 0 or more draws in an epoch.")
        length = finite_length(self.inner, "sample()")
        object.__setattr__(self, "cumulative", _cumulative(checked_weights(weights, length)))

    @property
    def length(self) -> int:
        return self.count

    def draws(self, epochs: Numbers, positions: Numbers) -> Draws:
        uniforms = sample_uniforms(self.seed, self.step, epochs, positions, 1)[:, 0]
        drawn = self.inner.draws(epochs, self._chosen(uniforms))
        return drawn._replace(key=mixed(mixed(positions.astype(np.uint64)) ^ drawn.key))

    def _chosen(self, uniforms: NDArray[np.float64]) -> Numbers:
        """The first inner position whose sum is above each number; a weight of 0 adds nothing, so it is never first."""
        ascending = np.argsort(uniforms)  # searches that follow one another in memory take half the time
        chosen = np.empty(len(uniforms), np.int64)
        chosen[ascending] = np.searchsorted(self.cumulative, uniforms[ascending], side="right")
        return chosen


def checked_weights(weights: ArrayLike, length: int) -> NDArray[np.float64]:
    """The weights as numbers that can be drawn from, or an error that says which one cannot."""
    try:
        numbers = np.asarray(weights, np.float64)
    except (TypeError, ValueError) as error:
        raise OptionError(f"sample(weights=...): the weights are not numbers ({error}).") from error
    if numbers.shape != (length,):
        raise OptionError(
            f"sample(weights=...): expected {length:,} weights, one for each sample, got shape {numbers.shape}."
        )
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
    if len(wrong):
        raise OptionError(
            f"sample(weights=...): {len(wrong):,} of {length:,} weights are not finite numbers of 0 or more; "
            f"the first is weight {wrong[0]}: {numbers[wrong[0]]}."
        )
    if not numbers.any():
        raise OptionError(
            "sample(weights=...): all weights are 0, so nothing can be drawn. Give some samples a weight."
        )
    return numbers


def _cumulative(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums up to each weight, up to 1 exactly, which is above every number that is drawn."""
    _, exponent = np.frexp(weights.max())
    sums = np.cumsum(np.ldexp(weights, -exponent))  # by a power of two, which is exact: huge weights would overflow
    sums /= sums[-1]
    return sums


def balanced_weights(labels: NDArray[Any]) -> NDArray[np.float64]:
    """Weights that make every class equally likely; a sample without a label (−1) gets 0 and is never drawn."""
    numbers = np.asarray(labels)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iub":
        raise OptionError(
            f"Balanced sampling needs one class number for each sample, got {numbers.dtype} of shape {numbers.shape}. "
            "Pass weights=... instead."
        )
    if not (numbers != NO_LABEL).any():
        raise OptionError("Balanced sampling needs labels, and no sample has one. Pass weights=... instead.")
    _, classes, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    return np.where(numbers == NO_LABEL, 0.0, 1.0 / counts[classes])
