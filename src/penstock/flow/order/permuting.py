"""A shuffle without a list: where each position of 0..length-1 goes, computed for itself.

A number is written as row and column of a grid that is just large enough. Eight times, in turns, the row is moved by a
hash of the column and the column by a hash of the row: a Feistel network, which can always be undone, so no two numbers
meet. The few that leave 0..length-1 (the last row may not be full) go through it again until they are back inside.

What is computed here is part of every saved state: the constants never change.
"""

from __future__ import annotations

from functools import lru_cache
from math import isqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.flow.order.draws import Numbers
from penstock.seeds import permutation, random_bits

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
