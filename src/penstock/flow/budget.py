"""One byte budget for all flows of a process: what does not fit is not taken, and nobody waits for it."""

from __future__ import annotations

import functools
import threading

from penstock.errors import RecipeError
from penstock.storage.free_memory import free_bytes as free_bytes

SHARE_OF_FREE = 0.5
_UNITS = {"kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40}


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


def bytes_of(value: int | str) -> int | None:
    """`memory=` as a number of bytes: "2 GB", 500_000_000, or None for "auto"."""
    if value == "auto":
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if isinstance(value, str):
        text = value.lower().replace(" ", "")
        number, unit = text[:-2], _UNITS.get(text[-2:])
        if unit and number.replace(".", "", 1).isdigit() and float(number) > 0:
            return int(float(number) * unit)
    raise RecipeError(f'memory={value!r} must be "auto", a number of bytes, or a size such as "2 GB".')
