"""Reading a Run, without torch, also while it is being written."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Any, Literal

from penstock.errors import DataError, OptionError, Problem, Sealed, one_of
from penstock.runs import layout
from penstock.runs.layout import json_file, json_lines, yaml_file
from penstock.storage.locations import refuses_urls
from penstock.storage.plain_files import read_text
from penstock.wording import counted

Which = Literal["best", "last"]
Line = dict[str, Any]


class Run(Sealed):
    """The folder that a training leaves.

    run = ps.Run("runs/pets")
    run.settings["train"]["epochs"]   the complete recipe, by section
    run.metrics()                     every line that was logged, as dicts
    run.scores("best")                the scores of the best validation
    run.checkpoint("best")            the path of its checkpoint
    """

    @refuses_urls()
    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not (self.folder / layout.SETTINGS).is_file():
            raise DataError([_no_run(self.folder)])

    def __repr__(self) -> str:
        return f"Run({self.folder.as_posix()!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self.folder.resolve() == other.folder.resolve()

    def __hash__(self) -> int:
        return hash(self.folder.resolve())

    def __fspath__(self) -> str:
        return str(self.folder)

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @functools.cached_property
    def _written(self) -> dict[str, Any]:
        return yaml_file(self.folder / layout.SETTINGS)

    @property
    def settings(self) -> dict[str, Any]:
        """The complete recipe, by section: data, task, model, train, feed, run."""
        return {name: section for name, section in self._written.items() if name != layout.CHOSEN}

    @property
    def chosen(self) -> dict[str, Any]:
        """What auto became, by section."""
        return self._written.get(layout.CHOSEN) or {}

    @property
    def environment(self) -> dict[str, Any]:
        """Machine, libraries, command, when it started and how it ended."""
        found: dict[str, Any] = json_file(self.folder / layout.ENVIRONMENT, {})
        return found

    def metrics(self) -> list[Line]:
        """Every line that was logged, in order; a number that was not finite is nan."""
        return [
            {name: math.nan if value is None else value for name, value in line.items()}
            for line in json_lines(self.folder / layout.METRICS)
        ]

    def validations(self) -> list[Line]:
        """The lines of metrics that hold scores, with their epoch and step."""
        marks = {layout.VALIDATION_LOSS, (self.goal or {}).get("name")}
        return [line for line in self.metrics() if marks & line.keys()]

    def scores(self, which: Which = "best") -> dict[str, float]:
        """The scores of the best validation or of the last; empty if there was none."""
        one_of("which", which, ("best", "last"))
        lines = self.validations()
        if not lines:
            return {}
        line = self._best(lines) if which == "best" else lines[-1]
        return {name: value for name, value in line.items() if _is_score(name)}

    def _best(self, lines: list[Line]) -> Line:
        """By the score that checkpoints were chosen by; the first of equals, as there. Without one, the last."""
        goal = self.goal
        judged = [line for line in lines if goal and not math.isnan(line.get(goal["name"], math.nan))]
        if goal is None or not judged:
            return lines[-1]
        sign = 1 if goal["larger_is_better"] else -1
        return max(judged, key=lambda line: sign * line[goal["name"]])

    @property
    def goal(self) -> dict[str, Any] | None:
        """The score that checkpoints were chosen by: its `name`, and whether `larger_is_better`."""
        return self.chosen.get("goal")

    def feed(self) -> list[Line]:
        """What each hop did, every few seconds."""
        return json_lines(self.folder / layout.FEED)

    def details(self) -> dict[str, Any]:
        """What a report draws of the validation: a confusion matrix, curves."""
        found: dict[str, Any] = json_file(self.folder / layout.DETAILS, {})
        return found

    def worst(self) -> list[Line]:
        """The samples that were answered most wrongly, the worst first; `thumbnail` is a path in this folder."""
        found: list[Line] = json_file(self.folder / layout.WORST, [])
        return found

    def bad_samples(self) -> list[Line]:
        """Samples that could not be read, with the reason of each."""
        found: list[Line] = json_file(self.folder / layout.SAMPLES, [])
        return found

    def stages(self) -> list[Run]:
        """The Run of each stage, in the order that they were trained; empty where training has none."""
        folders = [path.parent for path in (self.folder / layout.STAGES).glob(f"*/{layout.SETTINGS}")]
        runs = [Run(folder) for folder in sorted(folders)]
        return sorted(runs, key=lambda run: str(run.environment.get("started", "")))

    def log(self) -> str:
        """What was said."""
        path = self.folder / layout.LOG
        return read_text(path, errors="replace") if path.exists() else ""

    def checkpoint(self, which: Which = "best") -> Path:
        """The path of a checkpoint; where only the last was kept, the best is the last."""
        one_of("which", which, ("best", "last"))
        names = {"best": ("best.ckpt", "best-1.ckpt", "last.ckpt"), "last": ("last.ckpt",)}[which]
        for name in names:
            path = self.folder / layout.CHECKPOINTS / name
            if path.is_file():
                return path
        raise OptionError(self._no_checkpoint(which))

    def _no_checkpoint(self, which: Which) -> str:
        there = sorted(path.name for path in (self.folder / layout.CHECKPOINTS).glob("*.ckpt"))
        have = f"there is {', '.join(there)}" if there else "none is there: it ended before the first, or has them off"
        return f"{self.folder} has no {which} checkpoint; {have}."


def _is_score(name: str) -> bool:
    return name not in layout.NO_SCORES and not name.startswith(layout.TRAINING_PREFIX)


def data_words(run: Run) -> str:
    """Why the data of a Run that names no path cannot be opened again, and what they were."""
    facts = run.chosen.get("data") or {}
    parts = [facts] if "source" in facts else [part for part in facts.values() if isinstance(part, dict)]
    seen = [f"{part.get('source')}, {counted(part.get('samples'), 'sample')}" for part in parts]
    what = f" ({'; '.join(seen)})" if seen else ""
    return f"{run.folder} was trained on a Source made in Python{what}, and not on files"


def as_run(run: Run | str | Path) -> Run:
    """A Run, from itself or from its folder."""
    return run if isinstance(run, Run) else Run(run)


def _no_run(folder: Path) -> Problem:
    if not folder.exists():
        return Problem(folder.as_posix(), None, "there is no such folder", "A training writes one: penstock train")
    found = f"it has no {layout.SETTINGS}" if folder.is_dir() else "it is a file"
    inside = [path.parent.as_posix() for path in folder.glob(f"*/{layout.SETTINGS}")] if folder.is_dir() else []
    remedy = f"Name one of the Runs in it, such as {sorted(inside)[0]}" if inside else "Name the folder of a training"
    return Problem(folder.as_posix(), None, f"this is not a Run: {found}", remedy)
