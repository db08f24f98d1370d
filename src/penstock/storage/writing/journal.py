"""What a writer has finished, so that an interruption costs at most one shard or piece.

trees.pack.partial/
  plan.json              what is being written and how; must be the same when work goes on
  journal.jsonl          one line for each finished shard or piece
  …                      what a pack or an export keeps beside: `packing/journal.py`, `formats/exporting/journal.py`
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import asdict
from typing import Any, Generic, TypeVar

from penstock.errors import PackError
from penstock.storage.documents import load_json
from penstock.storage.mapped import refuse_lost_files
from penstock.storage.plain_files import read_text
from penstock.storage.writing.places import PLAN_NAME, Places

JOURNAL_NAME = "journal.jsonl"


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
            begun = load_json(read_text(self.places.workshop / PLAN_NAME))
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
        for text in read_text(path).splitlines() if path.exists() else ():
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


def _line(finished: Any) -> str:
    return json.dumps(asdict(finished)) + "\n"


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
