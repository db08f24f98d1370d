"""Samples drawn with replacement, some more often than others."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock.errors import RecipeError
from penstock.flow.order.draws import Draws, Numbers, Order
from penstock.flow.order.plain import finite_length
from penstock.seeds import mixed, sample_uniforms

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
            raise RecipeError(f"sample(count={self.count}): expected 0 or more draws in an epoch.")
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
        raise RecipeError(f"sample(weights=...): the weights are not numbers ({error}).") from error
    if numbers.shape != (length,):
        raise RecipeError(
            f"sample(weights=...): expected {length:,} weights, one for each sample, got shape {numbers.shape}."
        )
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
    if len(wrong):
        raise RecipeError(
            f"sample(weights=...): {len(wrong):,} of {length:,} weights are not finite numbers of 0 or more; "
            f"the first is weight {wrong[0]}: {numbers[wrong[0]]}."
        )
    if not numbers.any():
        raise RecipeError(
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
        raise RecipeError(
            f"Balanced sampling needs one class number for each sample, got {numbers.dtype} of shape {numbers.shape}. "
            "Pass weights=... instead."
        )
    if not (numbers != NO_LABEL).any():
        raise RecipeError("Balanced sampling needs labels, and no sample has one. Pass weights=... instead.")
    _, classes, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    return np.where(numbers == NO_LABEL, 0.0, 1.0 / counts[classes])
