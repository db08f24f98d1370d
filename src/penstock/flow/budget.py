"""One byte budget for all flows of a process: what does not fit is not taken, and nobody waits for it."""

from __future__ import annotations

import functools
import os
import threading
from pathlib import Path

from penstock.errors import RecipeError

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


def free_bytes() -> int:
    """Memory that the machine, or the control group of this process, has left."""
    return min(_machine_free(), *_group_free())


def _machine_free() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # not Linux
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 4 * 2**30  # Windows tells neither; a laptop has at least twice as much


def _group_free() -> list[int]:
    """What each control group of this process has left, for both versions of control groups."""
    found = [2**62]
    for limit, used in _group_files():
        try:
            words = limit.read_text().strip(), used.read_text().strip()
        except OSError:
            continue
        if words[0].isdigit():
            found.append(max(int(words[0]) - int(words[1]), 0))
    return found


def _group_files() -> list[tuple[Path, Path]]:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    files = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            folder = Path("/sys/fs/cgroup") / path.lstrip("/")
            files.append((folder / "memory.max", folder / "memory.current"))
        elif "memory" in controllers.split(","):
            for folder in (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup/memory") / path.lstrip("/")):
                files.append((folder / "memory.limit_in_bytes", folder / "memory.usage_in_bytes"))
    return files


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
