"""Settings that were found good are remembered for the next run of the same plan on the same machine.

    cache folder / settings / <fingerprint of plan and machine>.json     {"version": 1, "workers": 4, "prefetch": 3, …}

Nothing depends on them: a file that is missing, broken or cannot be written is noted, and the flow measures again.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import xxhash

from penstock.codecs import kernel
from penstock.flow.tuning.allocating import MOST_PREFETCH, MOST_WORKERS, Settings
from penstock.flow.tuning.cores import cores
from penstock.storage.documents import load_json
from penstock.storage.locations import cache_folder
from penstock.storage.whole_files import write_whole

VERSION = 1
MOST_FILES = 300
KINDS = ("thread", "subprocess", "process")


@dataclass(frozen=True)
class Found:
    """What an earlier run found good."""

    workers: int
    prefetch: int
    task_rows: int | None
    executor: str


class Remembered:
    """The memory of one plan; `note` says what went wrong with it last, if anything."""

    def __init__(self, fingerprint: Callable[[], str]) -> None:
        self._fingerprint = fingerprint  # worked out when a flow runs, not when it is written down
        self.note: str | None = None
        self._known: Found | None = None

    @property
    def path(self) -> Path:
        machine = (cores(), platform.node(), platform.machine(), platform.python_version(), kernel.which())
        name = xxhash.xxh3_64_hexdigest(repr((self._fingerprint(), machine)).encode())
        return cache_folder() / "settings" / f"{name}.json"

    def read(self) -> Found | None:
        """What was found good, if anything was and can be read."""
        try:
            self._known = _checked(load_json(self.path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            self._known = None
        except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: there is no home folder
            self._known = None
            self.note = f"remembered settings could not be read and are measured again: {error}"
        return self._known

    def write(self, settings: Settings, executor: str) -> None:
        """Remember these, whole or not at all."""
        found = Found(settings.workers, settings.prefetch, settings.task_rows, executor)
        if found == self._known:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.path, json.dumps({"version": VERSION, **asdict(found)}), sync=False)
            _forget_oldest(self.path.parent)
        except (OSError, RuntimeError) as error:
            self.note = f"settings could not be remembered: {error}"
            return
        self._known = found


def _checked(values: Any) -> Found:
    """A file of anybody's making as settings; ValueError where it is none."""
    if not isinstance(values, dict) or values.pop("version", None) != VERSION:
        raise ValueError("it is not a file of settings of this version")
    if set(values) != set(Found.__dataclass_fields__):
        raise ValueError(f"expected {', '.join(Found.__dataclass_fields__)}, got {', '.join(map(str, values))}")
    found = Found(**values)
    _check_number("workers", found.workers, MOST_WORKERS + cores())
    _check_number("prefetch", found.prefetch, MOST_PREFETCH)
    if found.task_rows is not None:
        _check_number("task_rows", found.task_rows, 2**31)
    if found.executor not in KINDS:
        raise ValueError(f"executor is {found.executor!r} and must be one of {', '.join(KINDS)}")
    return found


def _check_number(name: str, value: Any, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ValueError(f"{name} is {value!r} and must be a whole number from 1 to {most}")


def _forget_oldest(folder: Path) -> None:
    files = sorted(folder.glob("*.json"), key=_modified)
    for path in files[: max(len(files) - MOST_FILES, 0)]:
        path.unlink(missing_ok=True)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another process forgot it just now
        return 0.0
