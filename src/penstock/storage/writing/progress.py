"""A bar on stderr while something long runs; silent where stderr is not a terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any


class ProgressBar:
    """Counts samples; `shown=None` shows the bar only on a terminal."""

    def __init__(self, total: int, shown: bool | None, title: str = "packing") -> None:
        self._total, self._title = total, title
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> ProgressBar:
        if self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(stderr=True))
            self._task = self._bar.add_task(self._title, total=self._total or None)
            self._bar.start()
        return self

    def advance(self, count: int) -> None:
        if self._bar is not None:
            self._bar.advance(self._task, count)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
