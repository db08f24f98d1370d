"""The peak memory of a piece of work, run in a process of its own.

Counted are anonymous and shared pages; pages of mapped files belong to the system and are given apart.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

POLL_SECONDS = 0.005


class Peak(NamedTuple):
    anonymous_mb: float
    resident_mb: float


def peak_of(code: str) -> Peak:
    """Run Python code in a fresh process and watch it until it ends."""
    process = subprocess.Popen([sys.executable, "-c", code])
    anonymous = resident = 0
    while process.poll() is None:
        status = _status(process.pid)
        anonymous = max(anonymous, status.get("RssAnon", 0) + status.get("RssShmem", 0))
        resident = max(resident, status.get("VmHWM", 0))
        time.sleep(POLL_SECONDS)
    if process.returncode:
        raise SystemExit(f"the measured code failed with {process.returncode}")
    return Peak(anonymous / 1024, resident / 1024)


def _status(pid: int) -> dict[str, int]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    pairs = (line.split(":", 1) for line in lines if line.startswith(("Rss", "VmHWM")))
    return {name: int(value.split()[0]) for name, value in pairs}
