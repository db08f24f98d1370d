"""A few samples that are read before a flow runs on them: it shows what a disk allows that nobody waits for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from penstock.diagnosis.disks import READERS
from penstock.diagnosis.variants import few
from penstock.flow.making.fusing import located
from penstock.samples import Raw, Sample, Schema, Source, Subset

NOT_OFFERED = ("source", "will_need")  # what is in memory need not be asked for


class KeptReads:
    """A source that gives what was read of it; all else it offers is that of the source."""

    def __init__(self, source: Source, kept: dict[int, Raw]) -> None:
        self.source, self._kept = source, kept

    def __getattr__(self, name: str) -> Any:
        if name in NOT_OFFERED or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.source, name)

    @property
    def schema(self) -> Schema:
        return self.source.schema

    def __len__(self) -> int:
        return len(self.source)

    def read(self, index: int) -> Raw:
        kept = self._kept.get(index)
        return self.source.read(index) if kept is None else kept

    def decode(self, raw: Raw) -> Sample:
        return self.source.decode(raw)


def few_read(source: Source, count: int) -> Subset:
    """Some samples of a source, all of them read; clips and the like, which are made of many, are left as they are."""
    some = few(source, count)
    base, indices, frames = located(some, np.arange(len(some)))
    if frames > 1:
        return some
    with ThreadPoolExecutor(READERS) as pool:
        read = dict(zip(indices.tolist(), pool.map(lambda index: _read(base, index), indices.tolist()), strict=True))
    return Subset(KeptReads(base, {index: raw for index, raw in read.items() if raw is not None}), indices)


def _read(base: Source, index: int) -> Raw | None:
    """A sample as bytes of its own, which may go to other processes; none where the flow must say what is wrong."""
    try:
        raw = base.read(index)
    except OSError:
        return None
    return Raw(raw.index, bytes(raw.data)) if isinstance(raw.data, memoryview) else raw
