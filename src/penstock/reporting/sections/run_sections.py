"""The sections on any Run: summary, scores, settings, environment, curves, and samples that went wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from penstock.reporting.curves import chart_grid, run_charts, single_values
from penstock.reporting.feeds import feed_totals
from penstock.reporting.page import Child, Markup, folded, joined, note, shortened, table, tag
from penstock.reporting.pictures import boxed_picture, has_boxes, thumbnail
from penstock.reporting.run_settings import Setting, further_choices, run_settings
from penstock.reporting.stories import FINISHED, RUNNING, Story, is_loss, is_score
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
    without_folders,
    words,
)
from penstock.runs.layout import SAMPLES
from penstock.runs.run import Line
from penstock.wording import counted

# The top of a page on a Run: its score, how long it took, what on, and how it ended.


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


# Scores: of the best and the last validation, and of every epoch.


MOST_ROWS = 40
MOST_COLUMNS = 10


def scores(story: Story) -> Markup | None:
    """A table of best and last, and all epochs folded away."""
    if not story.validations:
        return note("There was no validation, so there are no scores.") if story.metrics else None
    best, last = story.scores, story.validations[-1]
    best = {name: best[name] for name in sorted(best, key=lambda name: is_loss(name) and name != story.goal)}
    rows = [[_name(story, name), score_text(value), score_text(last.get(name))] for name, value in best.items()]
    head = ["", f"best (epoch {shown(story.best.get('epoch'))})", f"last (epoch {shown(last.get('epoch'))})"]
    if story.stages:  # judged once, at the end
        rows, head = [row[:2] for row in rows], ["", "all stages together"]
    shown_rows, more = rows[:MOST_ROWS], rows[MOST_ROWS:]
    parts = [table(head, shown_rows, class_="narrow", label="Scores")]
    if more:
        parts.append(folded(f"{len(more):,} more", table(head, more, class_="narrow", label="More scores")))
    return joined([*parts, _epochs(story)])


def _name(story: Story, name: str) -> Markup:
    return joined(
        [
            shortened(words(name), 60),
            tag("small", " decides which is best", class_="dim") if name == story.goal else None,
        ]
    )


def _epochs(story: Story) -> Markup | None:
    if len(story.validations) < 2:
        return None
    names = [name for name in story.scores if is_score(name)][:MOST_COLUMNS]
    names.sort(key=is_loss)
    rows = [[shown(line.get("epoch")), *(score_text(line.get(name)) for name in names)] for line in story.validations]
    head = ["epoch", *(shortened(words(name), 30) for name in names)]
    return folded(f"all {len(rows):,} validations", table(head, rows, label="Scores of every validation"))


# The complete settings, those that differ from the defaults first.


LONGEST_VALUE = 200


def settings(story: Story) -> Markup | None:
    """What was asked for, and what Penstock chose."""
    found = run_settings(story)
    if not found:
        return None
    changed = [one for one in found if not one.is_default]
    same = [one for one in found if one.is_default]
    asked = (
        _table(changed, "Settings that differ from their defaults") if changed else note("All are at their defaults.")
    )
    return joined([asked, _further(story), _folded(same)])


def setting_name(section: str, key: str) -> Markup:
    return tag("code", tag("span", f"{section}.", class_="dim"), shortened(key, 60))


def _table(rows: Sequence[Setting], label: str) -> Markup:
    made = [
        [
            setting_name(*one.path),
            tag("code", shortened(one.text, LONGEST_VALUE)),
            tag("code", MISSING if one.default is None else shortened(one.default, 60), class_="dim"),
        ]
        for one in rows
    ]
    return table(["key", "value", "default"], made, numbers=False, label=label)


def _further(story: Story) -> Markup | None:
    choices = further_choices(story)
    if not choices:
        return None
    rows = [
        [tag("code", shortened(name, 60)), tag("code", shortened(value_text(value)))] for name, value in choices.items()
    ]
    return joined([tag("h3", "Chosen by Penstock"), table([], rows, class_="plain", numbers=False, label="Choices")])


def _folded(same: Sequence[Setting]) -> Markup | None:
    if not same:
        return None
    return folded(f"{counted(len(same), 'setting')} at the default", _table(same, "Settings at their defaults"))


# Machine, libraries, command and log.


TOLD_ABOVE = ("started", "ended", "seconds", "outcome", "devices", "libraries")
LONGEST_LOG = 20_000  # characters


def environment(story: Story) -> Markup | None:
    """What the Run was made with."""
    told = {name: value for name, value in story.environment.items() if name not in TOLD_ABOVE}
    libraries = story.environment.get("libraries")
    rows = [[name, _value(name, value)] for name, value in told.items()]
    if isinstance(libraries, dict):
        rows += [[shortened(name, 40), shortened(version, 40)] for name, version in libraries.items()]
    parts = [table([], rows, class_="plain", numbers=False, label="Environment")] if rows else []
    return joined([*parts, _log(story)]) or None


def _value(name: str, value: Any) -> Markup:
    if name == "command" and isinstance(value, list):
        return tag("code", shortened(" ".join(without_folders(str(word)) for word in value), 400))
    return shortened(value_text(value), 400)


def _log(story: Story) -> Markup | None:
    text = without_folders(story.run.log().strip())
    if not text:
        return None
    shown = text if len(text) <= LONGEST_LOG else f"…{text[-LONGEST_LOG:]}"
    return folded("what was said while training", tag("pre", shown, tabindex="0"))


# Loss, scores and learning rate while training.


def curves(story: Story) -> Markup:
    """Charts by epoch, of each stage where there are some; the dotted line is the best validation."""
    if story.stages:
        return joined([_of_stage(stage) for stage in story.stages])
    return _drawn(story, run_charts(story))


def _of_stage(stage: Story) -> Markup:
    folder = "/".join(stage.run.folder.parts[-3:])
    charts = run_charts(stage, f"see penstock report {folder}")
    return joined([tag("h3", f"Stage {stage.name}"), _drawn(stage, charts)])


def _drawn(story: Story, made: list[Markup]) -> Markup:
    parts = [part for part in (chart_grid(made), single_values(story)) if part is not None]
    return joined(parts) if parts else note("Nothing was logged that could be drawn.")


# Samples that could not be read, and why.


MOST_BAD_ROWS = 100


def bad_samples(story: Story) -> Markup | None:
    """A table of the first hundred."""
    if not story.bad_samples:
        return None
    rows = [
        [shortened(row.get("key", row.get("index", ""))), shortened(row.get("reason", ""), 300)]
        for row in story.bad_samples[:MOST_BAD_ROWS]
    ]
    hidden = len(story.bad_samples) - len(rows)
    count = note(f"{counted(len(story.bad_samples), 'sample')} could not be read; others took their places.")
    more = note(f"{hidden:,} more are in {SAMPLES}.") if hidden else None
    return joined([count, table(["sample", "reason"], rows, numbers=False, label="Bad samples"), more])


# The samples that were answered most wrongly, as pictures.


MOST_SAMPLES = 48


def wrong_samples(story: Story) -> Markup | None:
    """Pictures with what was true and what was answered, the largest loss first."""
    if not story.worst:
        return None
    figures = [_figure(story, row) for row in story.worst[:MOST_SAMPLES]]
    if any(has_boxes(row) for row in story.worst):
        told = note(
            "Of the best validation, the samples with the most mistakes. Found boxes are red, true ones yellow."
        )
        return joined([told, tag("div", figures, class_="samples wide")])
    told = note("Of the best validation, the samples with the largest loss. ✓ marks those that were answered rightly.")
    return joined([told, tag("div", figures, class_="samples")])


def _figure(story: Story, row: Line) -> Markup:
    name = str(row.get("key", row.get("index", "")))
    truth, answer = str(row.get("truth", "")) or "nothing", str(row.get("answer", "")) or "nothing"
    is_right = truth == answer
    told = f"{name[-80:]}: {truth[:80]}, answered as {answer[:80]}"
    boxed = boxed_picture(story.run.folder, row, told) if has_boxes(row) else None
    picture = boxed or thumbnail(story.run.folder, row.get("thumbnail"), told)
    verdict = tag(
        "p",
        tag("span", shortened(truth, 40), class_="truth"),
        " ✓ " if is_right else " → ",
        None if is_right else tag("span", shortened(answer, 40), class_="answer"),
        " ",
        tag("small", percent(row.get("score"))) if "score" in row else None,
    )
    place = tag("p", shortened(name, 60), class_="place", title=name[:400])
    loss = tag("p", f"loss {shown(row.get('loss'), 3)}", class_="place") if "loss" in row else None
    return tag("figure", picture, tag("figcaption", verdict, place, loss), class_="right" if is_right else "wrong")
