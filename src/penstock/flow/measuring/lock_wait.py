"""How long a thread waited for the lock of a source: of HDF5 only one thread of a process reads at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.samples import Store


def lock_wait_seconds(locking_sources: Iterable[Store]) -> float:
    """Of the calling thread, since it began, over sources that have a lock."""
    return sum((source.lock_wait_seconds() for source in locking_sources), 0.0)


def lock_names(sources: Iterable[Store]) -> list[str]:
    """What those locks are called."""
    return list(dict.fromkeys(source.lock_name or "" for source in locking(sources)))


def locking(sources: Iterable[Store]) -> Iterator[Store]:
    """The sources that have a lock, of these and those below them."""
    for source in sources:
        if source.lock_name is not None:
            yield source
        yield from locking(source.below)
