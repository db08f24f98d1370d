"""Batch memory that goes round: a slot comes back when nobody holds an array of it any more.

A batch is handed out as arrays over one lease of the slot's memory. numpy keeps the lease alive as long as any
array or view of it exists; when it goes, the slot is free again. A batch that the user keeps is never overwritten.
Memory in the hands of the user is the user's: it is not counted in the budget until the slot comes back.
"""

from __future__ import annotations

import contextlib
import mmap
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.flow.budget import Allowance
from penstock.flow.making.layout import Layout

MakeMemory = Callable[[int, int], Any]  # (number of the slot, bytes) → an object with a writable buffer


class Slot:
    """One piece of batch memory."""

    def __init__(self, number: int, memory: Any) -> None:
        self.number, self.memory = number, memory

    def lease(self) -> NDArray[np.uint8]:
        # Not from an array: numpy would then let views skip the lease and point at the memory itself.
        return np.frombuffer(self.memory, np.uint8)


def private_memory(number: int, size: int) -> Any:
    """Memory of this process alone, on whole pages; large ones where there are any, which come and go quickly."""
    flags = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
    memory = mmap.mmap(-1, max(size, 1), **({"flags": flags} if flags else {}))
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a system that has none
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


class SlotRing:
    """The slots of one running epoch; used by the consumer's thread alone."""

    def __init__(self, layout: Layout, rows: int, allowance: Allowance, make: MakeMemory = private_memory) -> None:
        self.layout, self.rows = layout, rows
        self.bytes = layout.slot_bytes(rows)
        self._allowance, self._make = allowance, make
        self._returned: deque[Slot] = deque()  # appended by whichever thread drops the last array: needs no lock
        self.made = 0

    def take(self) -> tuple[Slot, dict[str, NDArray[Any]]] | None:
        """A slot and its fields as arrays, or None when the budget has no room for another one."""
        slot = self._next()
        if slot is None:
            return None
        lease = slot.lease()
        weakref.finalize(lease, self._returned.append, slot).atexit = False
        return slot, self.layout.arrays(lease, self.rows)

    def _next(self) -> Slot | None:
        if not self._allowance.take(self.bytes):
            return None
        if self._returned:
            return self._returned.popleft()
        try:
            slot = Slot(self.made, self._make(self.made, self.bytes))
        except BaseException:
            self._allowance.give(self.bytes)
            raise
        self.made += 1
        return slot

    def handed_over(self) -> None:
        """The arrays of a slot belong to the user now (or to nobody)."""
        self._allowance.give(self.bytes)
