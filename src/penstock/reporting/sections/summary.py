"""The top of a page on a Run: its score, how long it took, what on, and how it ended."""

from __future__ import annotations

import math
from typing import Any

from penstock.reporting.feeds import feed_totals
from penstock.reporting.markup import Child, Markup, shortened, tag
from penstock.reporting.stories import FINISHED, RUNNING, Story
from penstock.reporting.wording import (
    MISSING,
    duration,
    listed,
    moment,
    number,
    percent,
    score_text,
    shown,
    value_text,
    words,
)
from penstock.wording import counted

SHOWN_CLASSES = 6


def summary(story: Story) -> Markup:
    """Tiles with what matters most, and the facts below them."""
    tiles = [_score_tile(story), _time_tile(story), _epochs_tile(story), _feed_tile(story)]
    rows = [tag("div", tag("dt", name), tag("dd", text)) for name, text in facts(story).items()]
    return tag(
        "div",
        _warning(story),
        tag("div", [tile for tile in tiles if tile is not None], class_="tiles"),
        tag("dl", rows, class_="facts"),
    )


def badge(story: Story) -> Markup:
    """How it ended, in one word and colour."""
    word = story.outcome.split(":")[0]
    looks = {FINISHED: "good", RUNNING: "busy", "tried": "busy"}
    return tag("span", shortened(word, 30), class_=f"badge {looks.get(word, 'bad')}")


def _warning(story: Story) -> Markup | None:
    """What a reader must know before looking at numbers."""
    sentences = []
    if story.outcome.startswith("failed"):
        sentences.append(f"This training {story.outcome}")
    elif story.outcome == "interrupted":
        sentences.append("This training was interrupted; the numbers are those until then.")
    elif story.outcome == RUNNING:
        sentences.append("This training was running when its Run was read, or it was killed.")
    elif story.outcome == "tried":
        sentences.append("This was a trial of one batch: its numbers mean nothing.")
    if story.stages:
        sentences += [] if story.metrics else ["Scores come after the last stage."]
    elif not story.metrics:
        sentences.append("Nothing was logged yet.")
    elif not story.validations:
        sentences.append("There was no validation, so there are no scores.")
    if not sentences:
        return None
    return tag("p", shortened(" ".join(sentences), 600), class_="warning")


def _tile(name: str, value: Child, remark: Child = "") -> Markup:
    return tag(
        "div", tag("h3", name), tag("p", value, class_="value"), tag("p", remark, class_="remark"), class_="tile"
    )


def _score_tile(story: Story) -> Markup:
    scores = story.scores
    name = story.goal if story.goal in scores else next(iter(scores), None)
    if name is None:
        return _tile("Score", MISSING, "no validation")
    epoch = "of all stages together" if story.stages else f"best, epoch {shown(story.best.get('epoch'))}"
    return _tile(words(name).capitalize(), score_text(scores[name]), epoch)


def _time_tile(story: Story) -> Markup:
    seconds = story.environment.get("seconds")
    return _tile("Time", duration(seconds), f"began {moment(story.environment.get('started'))}")


def _epochs_tile(story: Story) -> Markup:
    steps = counted(int(_steps_done(story)), "step")
    if story.stages:
        stages = ", ".join(f"{stage.name} {_epochs_text(stage)}" for stage in story.stages)
        return _tile("Epochs", shown(epochs_done(story)), f"{stages}; {steps}")
    return _tile("Epochs", _epochs_text(story), steps)


def _epochs_text(story: Story) -> str:
    done, planned = epochs_done(story), story.settings.get("train", {}).get("epochs")
    return f"{shown(done)} of {value_text(planned)}" if planned else shown(done)


def _steps_done(story: Story) -> float:
    return sum(_last(one, "step") for one in story.stages or (story,))


def epochs_done(story: Story) -> float:
    """Epochs that were begun, as far as the log says; those of all stages."""
    return sum(_last(one, "epoch") for one in story.stages or (story,))


def _last(story: Story, name: str) -> float:
    values = [value for line in story.metrics if math.isfinite(value := number(line.get(name)))]
    return max(values, default=0.0)


def _feed_tile(story: Story) -> Markup | None:
    if story.stages:
        return _stages_feed_tile(story)
    totals = feed_totals(story.feed)
    if totals is None:
        return _tile("Feed", MISSING, "nothing was logged")
    rate = (
        f"{totals.samples_per_second:,.0f}" if totals.samples_per_second >= 10 else shown(totals.samples_per_second, 2)
    )
    share = f": {percent(totals.waiting_share)} waiting for data" if totals.waiting.is_known else ""
    remark = f"{totals.limit}{share}"
    return _tile("Feed", [rate, tag("small", " samples/s")], remark)


def _stages_feed_tile(story: Story) -> Markup:
    """Waiting in all stages together, and what each was bound by; pairs, clips and windows have no rate together."""
    totals = {stage.name: found for stage in story.stages if (found := feed_totals(stage.feed)) is not None}
    if not totals:
        return _tile("Feed", MISSING, "nothing was logged")
    share = sum(one.waited_seconds for one in totals.values()) / sum(one.seconds for one in totals.values())
    limits = "; ".join(f"{name} {one.limit}" for name, one in totals.items())
    return _tile("Feed", [percent(share), tag("small", " waiting for data")], limits)


def facts(story: Story) -> dict[str, Markup]:
    """What was trained, on what, where."""
    data, task, model = (story.settings.get(name, {}) for name in ("data", "task", "model"))
    classes = story.classes
    found: dict[str, Any] = {
        "Task": task.get("kind", MISSING),
        "Classes": f"{len(classes):,}: {listed(classes, SHOWN_CLASSES)}" if classes else MISSING,
        "Network": _network(model, task),
        "Data": value_text(data["path"]) if data.get("path") else "given in Python",
        "Hardware": hardware(story),
        "Ended": moment(story.environment.get("ended")),
        "Folder": story.run.folder.as_posix(),
    }
    return {name: shortened(text) for name, text in found.items()}


def _network(model: dict[str, Any], task: dict[str, Any]) -> str:
    behaviour = task.get("behaviour")
    if isinstance(behaviour, dict):  # a stage has the settings of the whole model
        model, task = behaviour, behaviour
    if not model:
        return MISSING
    weights, named = model.get("weights"), model.get("backbone", task.get("size"))  # a behaviour model has a size
    return f"{value_text(named)}, {'from random weights' if weights is None else f'from {weights}'}"


def hardware(story: Story) -> str:
    """Devices and cores."""
    told_by = [one.environment.get("devices") for one in (story, *story.stages)]
    devices, cores = next(filter(None, told_by), None), story.environment.get("cores")
    names = [str(one) for one in devices] if isinstance(devices, list) else []
    told = [listed(list(dict.fromkeys(names)), 3)] if names else []
    told[:1] = [f"{len(names)} × {told[0]}"] if len(names) > 1 else told[:1]
    told += [counted(int(cores), "core")] if cores else []
    return ", ".join(told) or MISSING
