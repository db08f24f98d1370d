"""A Run as a report tells it: read once, with every value of the kind that the page expects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.reporting.wording import number
from penstock.runs.layout import NO_SCORES, TRAINING_PREFIX
from penstock.runs.run import Line, Run

FINISHED = "finished"
RUNNING = "running"


@dataclass(frozen=True)
class Story:
    """What there is to tell; whatever a Run lacks is empty here."""

    run: Run
    name: str
    settings: dict[str, dict[str, Any]]
    chosen: dict[str, dict[str, Any]]
    environment: dict[str, Any]
    metrics: list[Line]
    validations: list[Line]
    best: Line  # the line of the best validation
    feed: list[Line]
    details: dict[str, Any]
    worst: list[Line]
    bad_samples: list[Line]
    stages: tuple[Story, ...] = ()  # of a training in stages: a story of each, under its name

    @property
    def goal(self) -> str | None:
        """The name of the score that checkpoints were chosen by."""
        name = self.chosen.get("goal", {}).get("name")
        return name if isinstance(name, str) else None

    @property
    def larger_is_better(self) -> bool:
        return bool(self.chosen.get("goal", {}).get("larger_is_better", True))

    @property
    def scores(self) -> dict[str, float]:
        """The scores of the best validation, the goal first."""
        found = {name: number(value) for name, value in self.best.items() if is_score(name)}
        first = {self.goal: found[self.goal]} if self.goal in found else {}
        return {**first, **found}

    @property
    def outcome(self) -> str:
        """finished, running, interrupted, tried, or failed and why."""
        return str(self.environment.get("outcome") or "unknown")

    @property
    def classes(self) -> list[str]:
        """Their names, from the validation or the task; behaviours are classes too."""
        task = self.settings.get("task", {})
        details = [self.details.get(word) for word in ("classes", "behaviours")]
        named = [*details, *(task.get(word) for word in ("classes", "behaviours"))]
        return next((names for each in named if (names := _names(each))), [])


def _names(value: Any) -> list[str]:
    """Names in a list, or those that something is told of."""
    return [str(name) for name in value] if isinstance(value, (list, Mapping)) else []


def is_loss(name: str) -> bool:
    return name.endswith("loss")


def is_score(name: str) -> bool:
    return name not in NO_SCORES and not name.startswith(TRAINING_PREFIX)


def story_of(run: Run, name: str) -> Story:
    """Read all of a Run but its log and its pictures."""
    validations = run.validations()
    stages = tuple(story_of(stage, stage.name) for stage in run.stages())
    return Story(
        run=run,
        name=name,
        settings=_sections(run.settings),
        chosen=_sections(run.chosen),
        environment=_mapping(run.environment),
        metrics=run.metrics(),
        validations=validations,
        best=_best_line(validations, run.scores("best"), run.goal),
        feed=run.feed(),
        details=_mapping(run.details()),
        worst=_mappings(run.worst()),
        bad_samples=[*_mappings(run.bad_samples()), *_of_stages(stages)],
        stages=stages,
    )


def _of_stages(stages: Sequence[Story]) -> list[Line]:
    """The bad samples of all stages; they see the same data, so what several met is told once."""
    return list({str(sample): sample for stage in stages for sample in stage.bad_samples}.values())


def _best_line(lines: Sequence[Line], scores: Mapping[str, float], goal: Mapping[str, Any] | None) -> Line:
    """The first line that has the best score; without a goal, the last."""
    name = str(goal["name"]) if goal else ""
    for line in lines:
        if name in scores and line.get(name) == scores[name]:
            return line
    return lines[-1] if lines else {}


def _sections(value: Any) -> dict[str, dict[str, Any]]:
    return {str(name): _mapping(section) for name, section in _mapping(value).items()}


def _mapping(value: Any) -> dict[str, Any]:
    """A file may hold anything; what is no set of names and values tells nothing."""
    return dict(value) if isinstance(value, Mapping) else {}


def _mappings(value: Any) -> list[Line]:
    return [_mapping(each) for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def named_stories(runs: Sequence[Run]) -> list[Story]:
    """Stories under the names of their folders, with as much of the path as tells them apart."""
    names = [run.name for run in runs]
    for depth in range(2, 12):
        if len(set(names)) == len(names):
            break
        counts = {name: names.count(name) for name in names}
        longer = [Path(*run.folder.resolve().parts[-depth:]).as_posix() for run in runs]
        names = [long if counts[name] > 1 else name for long, name in zip(longer, names, strict=True)]
    return [story_of(run, name) for run, name in zip(runs, names, strict=True)]
