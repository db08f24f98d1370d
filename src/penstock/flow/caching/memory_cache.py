"""`cache`: what a chain makes of a sample is made once, and kept in memory within the budget or as a pack on disk."""

from __future__ import annotations

import pickle
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.flow.budget import Allowance, process_budget
from penstock.flow.caching.cached_source import CachedSource
from penstock.flow.making.leaves import Leaf, made_sample
from penstock.flow.order.orders import Numbers
from penstock.flow.plans import FlowOptions
from penstock.flow.tuning.cores import cores
from penstock.samples import Raw, Sample, Store

SHARE_OF_BUDGET = 0.5  # the rest is for batches
ENTRY_BYTES = 1024  # what Python takes for one kept sample beside its values


def cached(leaf: Leaf, place: str | Path, wanted: Numbers, options: FlowOptions) -> Store:
    """A source that gives what a leaf makes of each sample, and makes it once.

    `wanted` are the samples that the plan can ever ask for.
    """
    if str(place) == "memory":
        return MemoryCache(leaf, options.memory, max(cores(), options.workers or 1))
    if not str(place):
        raise OptionError('cache("") has no place: use cache("memory"), or name a folder.')
    from penstock.flow.caching.disk_cache import DiskCache  # imported when asked for: the first batch waits for imports

    return DiskCache(leaf, Path(place).expanduser(), wanted, options.on_bad_sample == "substitute")


class MemoryCache(CachedSource):
    """Samples are kept decoded as long as there is room; what does not fit is made anew each time.

    Arrays are given out read-only, from the first time on. Each of `processes` that get a copy gets it empty, and may
    keep its part of what this one may.
    """

    def __init__(self, leaf: Leaf, memory: int | None, processes: int) -> None:
        self.leaf, self._processes = leaf, processes
        self._begin_empty(process_budget().limit if memory is None else memory)

    def _begin_empty(self, memory: int) -> None:
        budget = process_budget()
        self._allowance = Allowance(budget, int(min(memory, budget.limit) * SHARE_OF_BUDGET))
        self._kept: dict[int, Kept] = {}
        self._lock = threading.Lock()
        weakref.finalize(self, give_all_back, self._allowance).atexit = False

    def __getstate__(self) -> dict[str, Any]:
        memory = int(self._allowance.limit / SHARE_OF_BUDGET / self._processes)
        return {"leaf": self.leaf, "processes": 1, "memory": memory}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @property
    def kept_bytes(self) -> int:
        return self._allowance.taken

    @property
    def kept_samples(self) -> int:
        return len(self._kept)

    def read(self, index: int) -> Raw:
        return Raw(index, None)

    def decode(self, raw: Raw) -> Sample:
        kept = self._kept.get(raw.index)
        if kept is None:
            kept = Kept(made_sample(self.leaf, raw.index))
            self._keep(raw.index, kept)
        return kept.sample()

    def _keep(self, index: int, kept: Kept) -> None:
        if not kept.can_stay or not self._allowance.take(kept.bytes):
            return
        with self._lock:
            is_first = self._kept.setdefault(index, kept) is kept
        if not is_first:  # another thread made it at the same time
            self._allowance.give(kept.bytes)

    def prepare(self) -> None:
        self.source.prepare()

    @property
    def is_prepared(self) -> bool:
        return self.source.is_prepared


class Kept:
    """A sample that cannot be changed: arrays are read-only, and what else may change is kept as its bytes."""

    def __init__(self, sample: Sample) -> None:
        self.bytes = ENTRY_BYTES
        self.can_stay = True
        self._values = {name: self._frozen(value) for name, value in sample.items()}

    def _frozen(self, value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.dtype.kind != "O":
            array = value.view() if _holds_no_more(value) else value.copy()
            array.flags.writeable = False  # of the view: the array itself may belong to the source
            self.bytes += array.nbytes
            return array
        if isinstance(value, (str, bytes)):
            self.bytes += 4 * len(value)
            return value
        if value is None or isinstance(value, (bool, int, float, complex, np.generic)):
            return value
        return self._as_bytes(value)

    def _as_bytes(self, value: Any) -> Any:
        try:
            data = pickle.dumps(value)
        except (pickle.PicklingError, AttributeError, TypeError):
            self.can_stay = False
            return value
        self.bytes += len(data)
        return _Pickled(data)

    def sample(self) -> Sample:
        """The sample, in a dictionary of its own."""
        return {
            name: pickle.loads(value.data) if isinstance(value, _Pickled) else value
            for name, value in self._values.items()
        }


def _holds_no_more(array: NDArray[Any]) -> bool:
    """Whether an array keeps nothing alive but itself: a part of a larger one, or mapped memory, is copied."""
    owner = array if array.base is None else array.base
    return isinstance(owner, np.ndarray) and owner.flags.owndata and owner.nbytes <= array.nbytes


class _Pickled:
    """A value of this process as bytes; it never leaves memory."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def loaded(self) -> Any:
        return pickle.loads(self.data)


def give_all_back(allowance: Allowance) -> None:
    """The end of a cache is the end of what it took."""
    allowance.give(allowance.taken)
