"""What a writer has finished, so that an interruption costs at most one shard.

trees.pack.partial/
  plan.json              what is being packed and how; must be the same when work goes on
  journal.jsonl          one line for each finished shard
  shard-00000.arrow      finished, or the one that was being written
  shard-00000.stamps     for each sample up to here, a number that changes when its file or labels do
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import PackError
from penstock.packing.layout import shard_name
from penstock.packing.manifest import ShardEntry

PLAN_NAME = "plan.json"
JOURNAL_NAME = "journal.jsonl"


@dataclass(frozen=True)
class FinishedShard:
    """A line of the journal. `part` and `sample` say where the next shard begins."""

    entry: ShardEntry
    part: int
    sample: int
    rows: int
    sums: dict[str, Any]
    skipped: list[dict[str, str]]


class Journal:
    """The record beside the shards of a pack that is being written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.finished: list[FinishedShard] = []

    def begin(self, plan: dict[str, Any]) -> None:
        (self.folder / PLAN_NAME).write_text(json.dumps(plan, indent=1), encoding="utf-8")

    def go_on(self, plan: dict[str, Any]) -> None:
        """Read what is finished; raise when it was begun from other data or with other options."""
        try:
            begun = json.loads((self.folder / PLAN_NAME).read_text(encoding="utf-8"))
        except (OSError, json.JSONDecodeError):
            self.begin(plan)
            return
        difference = _difference(begun, json.loads(json.dumps(plan)))
        if difference:
            raise PackError(
                f"cannot resume {self.folder}: {difference}. Use the same data and options, "
                "or pass --overwrite instead of --resume to start anew."
            )
        self.finished = list(self._whole_lines())

    def _whole_lines(self) -> list[FinishedShard]:
        path = self.folder / JOURNAL_NAME
        if not path.exists():
            return []
        finished = []
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                values = json.loads(line)
            except json.JSONDecodeError:
                break  # the writer was killed while it wrote this line; that shard is made again
            values["entry"] = ShardEntry(**values["entry"])
            finished.append(FinishedShard(**values))
        return [shard for shard in finished if self._is_whole(shard)]

    def _is_whole(self, shard: FinishedShard) -> bool:
        path = self.folder / shard.entry.file
        return path.exists() and path.stat().st_size == shard.entry.bytes

    def add(self, shard: FinishedShard, stamps: NDArray[np.uint64]) -> None:
        (self.folder / stamps_name(len(self.finished))).write_bytes(stamps.tobytes())
        with (self.folder / JOURNAL_NAME).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(shard)) + "\n")
        self.finished.append(shard)

    def stamps(self, number: int) -> NDArray[np.uint64]:
        return np.fromfile(self.folder / stamps_name(number), np.uint64)

    def clear(self) -> None:
        """Remove everything that is not part of the finished pack."""
        (self.folder / PLAN_NAME).unlink(missing_ok=True)
        (self.folder / JOURNAL_NAME).unlink(missing_ok=True)
        for number in range(len(self.finished)):
            (self.folder / stamps_name(number)).unlink(missing_ok=True)


def stamps_name(number: int) -> str:
    return shard_name(number).removesuffix(".arrow") + ".stamps"


def _difference(begun: dict[str, Any], plan: dict[str, Any]) -> str:
    """The first thing in which two plans differ, in words."""
    for name, value in plan.items():
        before = begun.get(name)
        if before == value:
            continue
        if isinstance(value, dict) and isinstance(before, dict):
            changed = next(key for key in {**before, **value} if before.get(key) != value.get(key))
            return f"{name} {changed!r} was {before.get(changed)!r} and is {value.get(changed)!r}"
        return f"{name} was {_short(before)} and is {_short(value)}"
    return ""


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 80 else text[:77] + "…"
