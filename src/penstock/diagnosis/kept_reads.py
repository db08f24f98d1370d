"""A few samples that are read before a flow runs on them: it shows what a disk allows that nobody waits for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.diagnosis.disks import READERS
from penstock.diagnosis.variants import few
from penstock.samples import Numbers, Raw, Store, Subset, View


class KeptReads(View):
    """A source that gives what was read of it; all else it offers is that of the source."""

    def __init__(self, source: Store, kept: dict[int, Raw]) -> None:
        self.source, self._kept = source, kept

    @property
    def kind(self) -> type:
        return self.source.kind

    def read(self, index: int) -> Raw:
        kept = self._kept.get(index)
        return self.source.read(index) if kept is None else kept

    def fingerprint(self) -> str | None:
        return self.source.fingerprint()

    def gather(self, name: str, indices: Numbers) -> NDArray[Any] | None:
        return self.source.gather(name, indices)

    def will_need(self, indices: Numbers) -> int:
        return 0  # what is in memory need not be asked for


def few_read(source: Store, count: int) -> Subset:
    """Some samples of a source, all of them read; clips and the like, which are made of many, are left as they are."""
    some = few(source, count)
    base, indices, frames = some.images_at(np.arange(len(some)))
    if frames > 1:
        return some
    with ThreadPoolExecutor(READERS) as pool:
        read = dict(zip(indices.tolist(), pool.map(lambda index: _read(base, index), indices.tolist()), strict=True))
    return Subset(KeptReads(base, {index: raw for index, raw in read.items() if raw is not None}), indices)


def _read(base: Store, index: int) -> Raw | None:
    """A sample as bytes of its own, which may go to other processes; none where the flow must say what is wrong."""
    try:
        raw = base.read(index)
    except OSError:
        return None
    return Raw(raw.index, bytes(raw.data)) if isinstance(raw.data, memoryview) else raw
