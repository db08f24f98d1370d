"""Memory that goes round: the first touch of fresh pages costs as much as copying a file into them."""

from __future__ import annotations

import weakref

import numpy as np
from numpy.typing import NDArray


class Blocks:
    """Blocks of one size; each comes back by itself when nothing refers to it any more. Safe in threads."""

    def __init__(self, block_bytes: int) -> None:
        self._block_bytes = block_bytes
        self._free: list[NDArray[np.uint8]] = []

    def allocate(self, size: int) -> memoryview:
        """So many bytes of a block, with whatever is in them; what is larger than a block is made and forgotten."""
        if size > self._block_bytes:
            return np.empty(size, np.uint8).data
        try:
            block = self._free.pop()
        except IndexError:
            block = np.empty(self._block_bytes, np.uint8)
        # Every slice and every buffer made of it refers to this array, so its end is the end of them all.
        lent = block.view()
        weakref.finalize(lent, self._free.append, block).atexit = False
        return lent.data[:size]
