"""One byte budget for all flows of a process: what does not fit is not taken, and nobody waits for it."""

from __future__ import annotations

import functools
import threading

from penstock.storage.free_memory import SHARE_OF_FREE
from penstock.storage.free_memory import free_bytes as free_bytes


class Budget:
    """Bytes that may be taken and are given back; safe in threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._taken = 0
        self._lock = threading.Lock()

    @property
    def taken(self) -> int:
        return self._taken

    def take(self, amount: int) -> bool:
        """Take so many bytes if they fit; nobody waits here, a flow goes on with fewer slots."""
        with self._lock:
            if self._taken + amount > self.limit:
                return False
            self._taken += amount
            return True

    def give(self, amount: int) -> None:
        with self._lock:
            self._taken -= amount


class Allowance:
    """What one flow may take of the budget of its process: at most `limit`, if the user gave one."""

    def __init__(self, shared: Budget, limit: int | None) -> None:
        self._shared, self._own = shared, Budget(shared.limit if limit is None else limit)

    @property
    def limit(self) -> int:
        return min(self._own.limit, self._shared.limit)

    @property
    def taken(self) -> int:
        return self._own.taken

    @property
    def free(self) -> int:
        return min(self._own.limit - self._own.taken, self._shared.limit - self._shared.taken)

    def take(self, amount: int) -> bool:
        if not self._own.take(amount):
            return False
        if self._shared.take(amount):
            return True
        self._own.give(amount)
        return False

    def give(self, amount: int) -> None:
        self._own.give(amount)
        self._shared.give(amount)


@functools.cache
def process_budget() -> Budget:
    """The budget that all flows of this process share: half of what was free when the first one asked."""
    return Budget(int(free_bytes() * SHARE_OF_FREE))
