"""The memory of a contestant and all its processes: anonymous and shared pages, each counted once."""

from __future__ import annotations

import threading
import time
from pathlib import Path

POLL_SECONDS = 0.02
COUNTED = ("Pss_Anon:", "Pss_Shmem:")


class Watch:
    """Looks at a process and its descendants until the block ends; `peak_mb` is the most they had together."""

    def __init__(self, pid: int) -> None:
        self._pid, self._ended = pid, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.peak_mb = 0.0

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.is_set():
            self.peak_mb = max(self.peak_mb, sum(proportional_mb(pid) for pid in family(self._pid)))
            time.sleep(POLL_SECONDS)


def family(pid: int) -> list[int]:
    """A process and everything that it started."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        for child in children:
            found += family(int(child))
    return found


def proportional_mb(pid: int) -> float:
    """Pages that several processes share are counted in parts."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith(COUNTED)) / 1024
