"""What a writer has finished, so that an interruption costs at most one shard.

trees.pack.partial/
  plan.json              what is being packed and how; must be the same when work goes on
  journal.jsonl          one line for each finished shard
  shard-00000.arrow      finished, or the one that was being written
  shard-00000.stamps     for each sample up to here, a number that changes when its file or labels do
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from penstock.errors import PackError
from penstock.packing.layout import shard_name
from penstock.packing.manifest import ShardEntry
from penstock.packing.shards import file_checksum
from penstock.storage.documents import load_json
from penstock.storage.mapped import refuse_lost_files
from penstock.storage.writing.places import PLAN_NAME, Places

JOURNAL_NAME = "journal.jsonl"


@dataclass(frozen=True)
class FinishedShard:
    """A line of the journal. `part` and `sample` say where the next shard begins."""

    entry: ShardEntry
    part: int
    sample: int
    rows: int
    sums: dict[str, Any]
    skipped: list[dict[str, Any]]


Finished = TypeVar("Finished")


class WorkJournal(ABC, Generic[Finished]):
    """Lines about finished work, in order; those up to the first that is not whole count after an interruption."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.finished: list[Finished] = []

    @abstractmethod
    def parsed(self, values: dict[str, Any]) -> Finished:
        """A line from its JSON; KeyError or TypeError where it is none."""

    @abstractmethod
    def is_whole(self, line: Finished, number: int) -> bool:
        """Whether everything that line `number` tells of is there."""

    def begin(self, plan: dict[str, Any]) -> None:
        """Start anew."""
        self.places.begin(json.dumps(plan, indent=1))

    def go_on(self, plan: dict[str, Any]) -> None:
        """Take over what is finished; raise when it was begun from other data or with other options."""
        try:
            begun = load_json((self.places.workshop / PLAN_NAME).read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            self.begin(plan)  # killed before the plan was written: nothing is finished
            return
        changed = difference(begun, json.loads(json.dumps(plan)))
        if changed:
            raise PackError(
                f"cannot resume {self.places.workshop}: {changed}. Use the same data and options, "
                "or pass overwrite=True instead of resume=True to start again."
            )
        self.finished = self._whole_lines()
        # Written anew, because a line that a killed writer began would swallow the next one.
        (self.places.workshop / JOURNAL_NAME).write_text("".join(map(_line, self.finished)), encoding="utf-8")

    def _whole_lines(self) -> list[Finished]:
        """The lines up to the first that is not whole: what comes after it must be made again."""
        path = self.places.workshop / JOURNAL_NAME
        found: list[Finished] = []
        for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            try:
                line = self.parsed(load_json(text))
            except (json.JSONDecodeError, KeyError, TypeError):
                break
            if not self.is_whole(line, len(found)):
                break
            found.append(line)
        return found

    def note(self, line: Finished) -> None:
        """One more piece of work is finished, unless a file that it was made from was cut short meanwhile."""
        refuse_lost_files()
        with (self.places.workshop / JOURNAL_NAME).open("a", encoding="utf-8") as file:
            file.write(_line(line))
        self.finished.append(line)


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


def _line(finished: Any) -> str:
    return json.dumps(asdict(finished)) + "\n"


def stamps_name(number: int) -> str:
    return shard_name(number).removesuffix(".arrow") + ".stamps"


def difference(begun: dict[str, Any], plan: dict[str, Any]) -> str:
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
