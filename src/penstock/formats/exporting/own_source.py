"""An export must not replace what it is made from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from penstock.errors import PackError
from penstock.samples import Store


def refuse_own_source(source: Store, target: Path) -> None:
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


def _files(source: Store) -> Iterator[str]:
    if source.path is not None:
        yield str(source.path)
    if source.parts is not None:
        yield from (part.origin().file for part in source.parts)
    elif source.tells_origins:
        for index in range(len(source)):
            with suppress(OSError):  # a file that is not there cannot be overwritten
                yield source.origin(index).file
