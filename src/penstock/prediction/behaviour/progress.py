"""How far the videos are, for people who wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Progress:
    """A bar for each video that is being looked at; without a console it says nothing."""

    def __init__(self, bars: Any = None) -> None:
        self._bars = bars
        self._videos = None if bars is None else bars.add_task("videos", total=None)

    def begin(self, name: str, frames: int, done: int) -> Any:
        """A video of about so many frames, of which some are done."""
        return None if self._bars is None else self._bars.add_task(name, total=frames or None, completed=done)

    def advance(self, bar: Any, frames: int) -> None:
        if self._bars is not None:
            self._bars.advance(bar, frames)

    def end(self, bar: Any) -> None:
        if self._bars is not None:
            self._bars.remove_task(bar)
            self._bars.advance(self._videos)

    def pass_over(self) -> None:
        """A video that was done before."""
        if self._bars is not None:
            self._bars.advance(self._videos)

    def expect(self, videos: int) -> None:
        if self._bars is not None:
            self._bars.update(self._videos, total=videos)


@contextmanager
def shown(videos: int, wanted: bool) -> Iterator[Progress]:
    """Bars on standard error while the block runs, where they are wanted."""
    if not wanted:
        yield Progress()
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True)) as bars:
        progress = Progress(bars)
        progress.expect(videos)
        yield progress
