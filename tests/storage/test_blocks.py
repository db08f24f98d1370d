"""Memory goes round, and never while somebody still looks at it."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa
import pytest

from penstock.storage.blocks import Blocks


def address(view: memoryview) -> int:
    return int(np.frombuffer(view, np.uint8).ctypes.data)


def test_a_block_is_used_again_when_nothing_refers_to_it() -> None:
    blocks = Blocks(1000)
    first = blocks.allocate(700)
    where = address(first)
    assert len(first) == 700
    del first
    gc.collect()
    assert address(blocks.allocate(300)) == where


@pytest.mark.parametrize("keep", [lambda view: view[10:20], lambda view: pa.py_buffer(view[10:20])])
def test_a_block_stays_while_a_slice_or_buffer_of_it_lives(keep: object) -> None:
    blocks = Blocks(1000)
    first = blocks.allocate(700)
    where, kept = address(first), keep(first)  # type: ignore[operator]
    del first
    gc.collect()
    assert address(blocks.allocate(700)) != where
    assert len(kept) == 10


def test_more_than_a_block_is_given_too() -> None:
    view = Blocks(1000).allocate(5000)
    view[4999] = 1
    assert len(view) == 5000
