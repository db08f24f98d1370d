"""What a thread waited for: a core, the lock of a source; and whether data or compute is the limit."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from penstock.samples import Store

# How long a thread could run and had no core, as Linux counts it: other programs must not look like a slow disk.


NANO = 1e-9


class CoreWait:
    """Of the thread that enters it. The file stays open: opening it takes ten times as long as reading it (2 µs)."""

    def __init__(self) -> None:
        self._descriptor: int | None = None

    def __enter__(self) -> CoreWait:
        with contextlib.suppress(OSError):  # not Linux
            self._descriptor = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def seconds(self) -> float:
        """Seconds since the thread began; 0 where it is not told."""
        if self._descriptor is None:
            return 0.0
        try:
            return int(os.pread(self._descriptor, 100, 0).split()[1]) * NANO
        except (OSError, IndexError, ValueError):
            return 0.0


# How long a thread waited for the lock of a source: of HDF5 only one thread of a process reads at a time.


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


# Whether data or compute is the limit: the one rule of explanations, trainings, reports and the doctor.
#
# A consumer either uses a batch or waits for the next one. Where it waits for a tenth of its time or more, it is
# bound by data; below that there is nothing to do about the feed. Nothing is said before ENOUGH_BATCHES batches, and
# the wait for the first one does not count: it opens files and starts workers, whatever the training does afterwards.


NOTABLE_SHARE = 0.1
ENOUGH_BATCHES = 8  # the first ones open files and fill caches
NOT_KNOWN = f"too few steps to say whether data or compute is the limit (it takes {ENOUGH_BATCHES})"
MOST_GAIN = 100.0  # a consumer that does next to nothing says nothing about how fast it could be


@dataclass(frozen=True)
class Waiting:
    """How a consumer spent its time."""

    waited_seconds: float  # for batches
    used_seconds: float  # with them
    batches: float = ENOUGH_BATCHES

    @classmethod
    def of(cls, metrics: Mapping[str, Any]) -> Waiting:
        """From the metrics of a flow, without the wait for the first batch."""
        waited = metrics["waited_seconds"] - metrics.get("first_wait_seconds", 0.0)
        return cls(max(waited, 0.0), metrics["consumer_seconds"], metrics["batches"])

    @property
    def is_known(self) -> bool:
        """Whether there were enough batches to say anything."""
        return self.batches >= ENOUGH_BATCHES and self.seconds > 0

    @property
    def seconds(self) -> float:
        return self.waited_seconds + self.used_seconds

    @property
    def share(self) -> float:
        """The part of its time that it waited; 0 where no time passed."""
        return self.waited_seconds / self.seconds if self.seconds else 0.0

    @property
    def is_bound_by_data(self) -> bool:
        return self.share >= NOTABLE_SHARE

    @property
    def limit(self) -> str:
        if not self.is_known:
            return "too few steps to say"
        return "bound by data" if self.is_bound_by_data else "bound by compute"

    @property
    def gain(self) -> float:
        """How many times as fast it would be if it never waited."""
        return min(self.seconds / max(self.used_seconds, 1e-9), MOST_GAIN)

    @property
    def gain_words(self) -> str:
        """What could be won, as a sentence."""
        return f"Without waiting for data, training would be {self.gain:.1f} × faster."
