"""Batch memory that goes round: a slot comes back when nobody holds an array of it any more.

A batch is handed out as arrays over one lease of the slot's memory. numpy keeps the lease alive as long as any
array or view of it exists; when it goes, the slot is free again. A batch that the user keeps is never overwritten.
Memory in the hands of the user is the user's: it is not counted in the budget until the slot comes back. Between
epochs the slots of threads wait as memory that the system may take back, and are not counted either.
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
from penstock.flow.tuning.allocating import MOST_PREFETCH

MOST_RETURNED = 2 * MOST_PREFETCH
MakeMemory = Callable[[int, int], Any]  # (number of the slot, bytes) → an object with a writable buffer


class Slot:
    """One piece of batch memory."""

    def __init__(self, number: int, memory: Any, size: int) -> None:
        self.number, self.memory, self.size = number, memory, size

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


class Returned:
    """Slots that nobody holds; a flow keeps those of its own process for the next epoch, as new memory is slow.

    They come back in whichever thread drops the last array, and two epochs of a flow may share them: only single
    operations of a deque are used, which need no lock.
    """

    def __init__(self) -> None:
        self._slots: deque[Slot] = deque(maxlen=MOST_RETURNED)  # one more pushes the oldest out

    def put(self, slot: Slot) -> None:
        self._slots.append(slot)

    def take(self, size: int) -> Slot | None:
        """One of this size; others are of an epoch whose batches had another one, and go."""
        while True:
            try:
                slot = self._slots.pop()  # the one that was written last: the caches of the cores know it best
            except IndexError:
                return None
            if slot.size == size:
                return slot

    def rest(self, count: int) -> None:
        """Keep at most so many until the next epoch, as memory that the system may have back whenever it is short."""
        resting: list[Slot] = []
        while len(resting) < count:
            try:
                slot = self._slots.pop()
            except IndexError:
                break
            if not _offer_back(slot.memory):
                break
            resting.append(slot)
        self._slots.clear()
        self._slots.extend(resting)


def _offer_back(memory: Any) -> bool:
    """Tell the system that it may take this memory back; false where that cannot be said."""
    if not (isinstance(memory, mmap.mmap) and hasattr(mmap, "MADV_FREE")):  # shared with processes, or no Linux
        return False
    try:
        memory.madvise(mmap.MADV_FREE)
    except OSError:  # an old system
        return False
    return True


class SlotRing:
    """The slots of one running epoch; used by the consumer's thread alone."""

    def __init__(
        self,
        layout: Layout,
        rows: int,
        allowance: Allowance,
        make: MakeMemory = private_memory,
        returned: Returned | None = None,
    ) -> None:
        self.layout, self.rows = layout, rows
        self.bytes = layout.slot_bytes(rows)
        self._allowance, self._make = allowance, make
        self._returned = Returned() if returned is None else returned
        self.made = 0

    def take(self) -> tuple[Slot, dict[str, NDArray[Any]]] | None:
        """A slot and its fields as arrays, or None when the budget has no room for another one."""
        slot = self._next()
        if slot is None:
            return None
        lease = slot.lease()
        weakref.finalize(lease, self._returned.put, slot).atexit = False
        return slot, self.layout.arrays(lease, self.rows)

    def _next(self) -> Slot | None:
        if not self._allowance.take(self.bytes):
            return None
        if (slot := self._returned.take(self.bytes)) is not None:
            return slot
        try:
            slot = Slot(self.made, self._make(self.made, self.bytes), self.bytes)
        except BaseException:
            self._allowance.give(self.bytes)
            raise
        self.made += 1
        return slot

    def handed_over(self) -> None:
        """The arrays of a slot belong to the user now (or to nobody)."""
        self._allowance.give(self.bytes)

    def rest(self, count: int) -> None:
        """The epoch is over: so many slots may wait for the next one."""
        self._returned.rest(count)
