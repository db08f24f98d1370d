"""How many cores this process may use: its affinity, and the quota of its control groups."""

from __future__ import annotations

import functools
import math
import os
from pathlib import Path


@functools.cache  # every new flow asks, and looking costs a quarter of a millisecond
def cores() -> int:
    """Cores that this process may keep busy at once; part of a core counts as one."""
    quotas = [math.ceil(quota) for quota in _quotas()]
    return max(min([_allowed(), *quotas]), 1)


def _allowed() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quotas() -> list[float]:
    """The quotas that hold for this process, in cores, for both versions of control groups."""
    found = [quota_of(_text(path)) for path in _files_of_version_2()]
    for folder in (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup/cpu,cpuacct")):
        words = f"{_text(folder / 'cpu.cfs_quota_us')} {_text(folder / 'cpu.cfs_period_us')}"
        found.append(quota_of(words))
    return [quota for quota in found if quota is not None]


def quota_of(words: str) -> float | None:
    """A quota as the kernel writes it, "150000 100000" for one and a half cores; None where there is no limit."""
    parts = words.split()
    if len(parts) != 2 or not all(part.isdigit() for part in parts) or int(parts[1]) == 0:
        return None
    return int(parts[0]) / int(parts[1])


def _files_of_version_2() -> list[Path]:
    """cpu.max of the group of this process and of all groups above it: each of them limits."""
    root = Path("/sys/fs/cgroup")
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        number, _, path = line.split(":", 2)
        if number == "0":
            folder = root / path.lstrip("/")
            return [one / "cpu.max" for one in (folder, *folder.parents) if one == root or root in one.parents]
    return [root / "cpu.max"]


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""  # not Linux, or no such limit
