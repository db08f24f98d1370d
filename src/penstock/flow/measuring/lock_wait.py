"""How long a thread waited for the lock of a source: of HDF5 only one thread of a process reads at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.samples import Concat, Subset


def lock_wait_seconds(locking_sources: Iterable[Any]) -> float:
    """Of the calling thread, since it began, over sources that have a lock."""
    return sum((float(source.lock_wait_seconds()) for source in locking_sources), 0.0)


def lock_names(sources: Iterable[Any]) -> list[str]:
    """What those locks are called (`lock_name`)."""
    return list(dict.fromkeys(getattr(source, "lock_name", "a lock") for source in locking(sources)))


def locking(sources: Iterable[Any]) -> Iterator[Any]:
    """The sources below these that have a lock and tell how long it was waited for (`lock_wait_seconds()`)."""
    for source in sources:
        if isinstance(source, Concat):
            yield from locking(source.sources)
        elif isinstance(source, Subset) or hasattr(source, "step"):  # clips
            yield from locking([source.source])
        elif hasattr(source, "leaf"):  # a cache
            yield from locking([source.leaf.source])
        elif hasattr(source, "lock_wait_seconds"):
            yield source
