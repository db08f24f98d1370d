"""How much memory is free or allowed, and whether what a compressed file says that it holds would fit."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.errors import OptionError

# A file that unpacks to less is read without a question. Deflate reaches 1,032 : 1, and real arrays rarely 200 : 1.
SMALL_BYTES = 256 << 20
LARGEST_RATIO = 500
SHARE_OF_FREE = 0.5  # that work may take which the user gave no limit
_UNITS = {"kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40}


def check_unpacked(unpacked: int, packed: int, *, in_memory: bool = True) -> None:
    """Refuse, by ValueError, what declares far more bytes than it has, or more than half of the memory that is free."""
    if unpacked <= SMALL_BYTES:
        return
    if unpacked > LARGEST_RATIO * max(packed, 1):
        raise ValueError(f"{packed:,} bytes unpack to {unpacked:,}, more than {LARGEST_RATIO} times as many")
    if in_memory and unpacked > free_bytes() // 2:
        raise ValueError(f"it unpacks to {unpacked:,} bytes, more than half of the memory that is free")


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
    raise OptionError(f'memory={value!r} must be "auto", a number of bytes, or a size such as "2 GB".')
