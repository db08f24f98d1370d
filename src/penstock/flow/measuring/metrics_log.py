"""Metrics as lines of JSON in a file: one line every few seconds of a running epoch, and one at its end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.errors import RecipeError

Clock = Callable[[], float]


class MetricsLog:
    """Appends to a file. One that can no longer be written ends the log, not the training; `note` says why."""

    def __init__(self, path: str | Path, every_seconds: float = 10.0, *, clock: Clock = time.time) -> None:
        if every_seconds <= 0:
            raise RecipeError(f"every_seconds={every_seconds} must be more than 0.")
        self.path, self.every_seconds, self._clock = Path(path), every_seconds, clock
        self.note: str | None = None
        self._last = clock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.open("a", encoding="utf-8").close()
        except OSError as error:
            raise RecipeError(f"the metrics cannot be logged to {self.path}: {error.strerror or error}.") from error

    def batch_used(self, epoch: int, report: Callable[[], dict[str, Any]]) -> None:
        """A batch was used; writes a line if the last one is long ago."""
        if self._clock() - self._last >= self.every_seconds:
            # The history of the settings is long and said at the end of an epoch.
            self._write("running", epoch, {name: value for name, value in report().items() if name != "history"})

    def epoch_left(self, epoch: int, report: Callable[[], dict[str, Any]]) -> None:
        """An epoch ended, or was left."""
        self._write("left", epoch, report())

    def _write(self, event: str, epoch: int, report: dict[str, Any]) -> None:
        self._last = self._clock()
        if self.note is not None:
            return
        line = json.dumps({"time": self._last, "event": event, "epoch": epoch, **report})
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            self.note = f"metrics are no longer logged to {self.path}: {error.strerror or error}"
