"""Randomness as a counter function: the same (seed, …) always gives the same number, in any order.

Nothing here has state and nothing touches a global generator. The mixing is splitmix64, written out so
that it stays the same on every version of numpy.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Splitmix64's finaliser: a bijection on 64-bit numbers that leaves no visible pattern."""
    with np.errstate(over="ignore"):
        values = values + _GOLDEN
        values = (values ^ (values >> np.uint64(30))) * _FIRST
        values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))


def random_bits(seed: int, index: NDArray[Any] | int, step: int = 0) -> NDArray[np.uint64]:
    """64 random bits for each index, for this seed and step."""
    return mixed(np.asarray(index).astype(np.uint64) ^ _step_start(seed, step))


def permutation(seed: int, length: int, step: int = 0) -> NDArray[np.int64]:
    """A permutation of 0..length-1 that depends on nothing but its arguments."""
    return np.argsort(random_bits(seed, np.arange(length), step), kind="stable").astype(np.int64)


def name_bits(seed: int, name: str) -> int:
    """64 random bits for a name, the same on every machine."""
    return int(xxhash.xxh3_64_intdigest(name.encode(), seed & 0xFFFFFFFFFFFFFFFF))


def sample_bits(seed: int, step: int, epochs: NDArray[Any], keys: NDArray[Any], counter: int = 0) -> NDArray[np.uint64]:
    """64 random bits for each sample: what a random step of a flow draws number `counter` from."""
    return mixed(_sample_starts(seed, step, epochs, keys) ^ np.uint64(counter))


def sample_uniforms(seed: int, step: int, epochs: NDArray[Any], keys: NDArray[Any], count: int) -> NDArray[np.float64]:
    """`count` numbers in [0, 1) for each sample, samples × count; derived here, because numpy may change its own."""
    if count == 0:
        return np.zeros((np.size(keys), 0))
    bits = mixed(_sample_starts(seed, step, epochs, keys)[:, None] ^ np.arange(count, dtype=np.uint64))
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _sample_starts(seed: int, step: int, epochs: NDArray[Any], keys: NDArray[Any]) -> NDArray[np.uint64]:
    """What all random numbers of a sample follow from, for one step."""
    of_epoch = mixed(np.asarray(epochs).astype(np.uint64) ^ _step_start(seed, step))
    return mixed(np.asarray(keys).astype(np.uint64) ^ of_epoch)


@functools.lru_cache(maxsize=256)
def _step_start(seed: int, step: int) -> NDArray[np.uint64]:
    """Where the numbers of one step begin; the same for all ranges of a flow."""
    start = mixed(mixed(np.atleast_1d(np.asarray(seed & 0xFFFFFFFFFFFFFFFF, np.uint64))) ^ np.uint64(step))
    start.flags.writeable = False
    return start
