"""An export must not replace what it is made from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from penstock.errors import PackError
from penstock.samples import Source


def refuse_own_source(source: Source, target: Path) -> None:
    """Raise when a file of the source lies in the folder that would be replaced."""
    if not target.exists():
        return
    place = target.resolve()
    for name in _files(source):
        file = Path(name).resolve()
        if file == place or place in file.parents:
            raise PackError(
                f"{target} holds {name}, which the export is made from. It is left alone: choose another path."
            )


def _files(source: Source) -> Iterator[str]:
    path = getattr(source, "path", None)
    if path is not None:
        yield str(path)
    if hasattr(source, "parts"):
        yield from (part.origin().file for part in source.parts)
    elif hasattr(source, "origin") and getattr(source, "tells_origins", True):
        for index in range(len(source)):
            with suppress(OSError):  # a file that is not there cannot be overwritten
                yield source.origin(index).file
