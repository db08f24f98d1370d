"""The order in which tf.data's `interleave` reads files: a few are open, and give a block each in turn."""

from __future__ import annotations

import heapq

import numpy as np

from penstock.errors import RecipeError
from penstock.flow.order.draws import Numbers


def interleaved(starts: Numbers, lengths: Numbers, *, cycle_length: int, block_length: int = 1) -> Numbers:
    """Every sample of every file once, as tf.data's interleave orders them; a file has its samples from its start on.

    `cycle_length` files are open at once and give `block_length` samples each in turn. A file that ends leaves its
    turn, and at the next turn of its place the next file is opened there.
    """
    for name, value in (("cycle_length", cycle_length), ("block_length", block_length)):
        if value < 1:
            raise RecipeError(f"interleave({name}={value}): expected 1 or more.")
    files = np.repeat(np.arange(len(lengths)), lengths)
    inside = np.arange(len(files)) - (np.cumsum(lengths) - lengths)[files]
    # A file that ends with a full block is found to be at its end one turn later, and that turn is lost.
    rounds, places = _openings(lengths // block_length + 1, cycle_length)
    turns = (rounds[files] + inside // block_length) * cycle_length + places[files]
    order = np.argsort(turns, kind="stable")
    return (starts[files] + inside)[order].astype(np.int64)


def _openings(turns: Numbers, cycle_length: int) -> tuple[Numbers, Numbers]:
    """In which round and at which place each file is opened, when it stays for so many turns."""
    free = [(0, place) for place in range(cycle_length)]
    opened = np.empty((len(turns), 2), np.int64)
    for file, stay in enumerate(turns.tolist()):
        opened[file] = free[0]
        heapq.heapreplace(free, (free[0][0] + stay, free[0][1]))
    return opened[:, 0], opened[:, 1]
