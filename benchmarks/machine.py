"""What figures belong to, and how a machine is kept the same for all."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

BUSY = 0.5  # processes that run, on the average of the last minute
CORES = 2


def machine() -> dict[str, Any]:
    """Processor, cores that may be used, system, and how busy it was."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = {line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")}
    return {
        "cpu": sorted(models),
        "cores": sorted(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "system": platform.platform(),
        "load": os.getloadavg()[0],
    }


def stay_on_two_cores() -> None:
    """Everybody who is started inherits this."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


def warn_if_busy() -> None:
    if os.getloadavg()[0] > BUSY:
        print("The machine is busy with something else: ratios will be unfair to those with few threads.")
