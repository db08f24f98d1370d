"""What a pack has finished, so that an interruption costs at most one shard.

trees.pack.partial/
  plan.json, journal.jsonl   as `storage/writing/journal.py` says
  shard-00000.stamps         for each sample up to here, a number that changes when its file or labels do
  pack/
    shard-00000.arrow        finished, or the one that was being written
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.packing.layout import shard_name
from penstock.packing.manifest import ShardEntry
from penstock.packing.shards import file_checksum
from penstock.storage.writing.journal import WorkJournal


@dataclass(frozen=True)
class FinishedShard:
    """A line of the journal. `part` and `sample` say where the next shard begins."""

    entry: ShardEntry
    part: int
    sample: int
    rows: int
    sums: dict[str, Any]
    skipped: list[dict[str, Any]]


class Journal(WorkJournal[FinishedShard]):
    """The record of a pack that is being written."""

    def parsed(self, values: dict[str, Any]) -> FinishedShard:
        return FinishedShard(**{**values, "entry": ShardEntry(**values["entry"])})

    def is_whole(self, line: FinishedShard, number: int) -> bool:
        path, stamps = self.places.content / line.entry.file, self.places.workshop / stamps_name(number)
        return path.exists() and stamps.exists() and file_checksum(path) == line.entry.checksum

    def add(self, shard: FinishedShard, stamps: NDArray[np.uint64]) -> None:
        (self.places.workshop / stamps_name(len(self.finished))).write_bytes(stamps.tobytes())
        self.note(shard)

    def stamps(self, number: int) -> NDArray[np.uint64]:
        return np.fromfile(self.places.workshop / stamps_name(number), np.uint64)


def stamps_name(number: int) -> str:
    return shard_name(number).removesuffix(".arrow") + ".stamps"
