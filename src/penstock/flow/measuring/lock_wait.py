"""How long a thread waited for the lock of a source: of HDF5 only one thread of a process reads at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.samples import Concat, Subset


def lock_wait_seconds(sources: Iterable[Any]) -> float:
    """Of the calling thread, since it began, over all sources that have a lock and tell (`lock_wait_seconds()`)."""
    return sum((float(source.lock_wait_seconds()) for source in _locking(sources)), 0.0)


def lock_names(sources: Iterable[Any]) -> list[str]:
    """What those locks are called (`lock_name`)."""
    return list(dict.fromkeys(getattr(source, "lock_name", "a lock") for source in _locking(sources)))


def _locking(sources: Iterable[Any]) -> Iterator[Any]:
    for source in sources:
        if isinstance(source, Concat):
            yield from _locking(source.sources)
        elif isinstance(source, Subset) or hasattr(source, "step"):  # clips
            yield from _locking([source.source])
        elif hasattr(source, "leaf"):  # a cache
            yield from _locking([source.leaf.source])
        elif hasattr(source, "lock_wait_seconds"):
            yield source
