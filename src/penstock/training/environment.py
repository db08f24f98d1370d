"""What a Run was made with: machine, system and libraries, looked up without importing any of them."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from datetime import UTC, datetime
from typing import Any

from penstock.codecs import kernel

LIBRARIES = ("penstock", "torch", "torchvision", "lightning", "torchmetrics", "kornia", "numpy", "pyarrow")


def environment() -> dict[str, Any]:
    """Facts that explain a result later; nothing that names the user."""
    return {
        "command": [os.path.basename(sys.argv[0]), *sys.argv[1:]],  # noqa: PTH119 - a name, also of a path that is none
        "python": platform.python_version(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "cores": cores(),
        "decoder": kernel.which(),
        "libraries": {name: version for name in LIBRARIES if (version := _version(name))},
    }


def now() -> str:
    """The time, as Runs write it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
