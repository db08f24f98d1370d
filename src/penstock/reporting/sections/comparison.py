"""Several Runs beside each other: the sections of a page that compares them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from penstock.reporting.charts import slot_class
from penstock.reporting.curves import chart_grid, compared_charts
from penstock.reporting.feeds import FeedTotals, feed_totals
from penstock.reporting.page import Child, Markup, folded, joined, note, shortened, table, tag
from penstock.reporting.run_settings import Setting, run_settings
from penstock.reporting.sections.run_sections import badge, epochs_done, facts, setting_name
from penstock.reporting.sections.task_sections import class_rows, score_cell
from penstock.reporting.stories import Story
from penstock.reporting.wording import MISSING, duration, moment, number, percent, score_text, shown, words

LEFT_OUT = (("run", "folder"), ("run", "progress"), ("run", "watch"), ("run", "resume"))
MOST_ROWS = 40
Stories = Sequence[Story]


def names(stories: Stories) -> list[Child]:
    """The head of every table: a column for each Run, in the colour of its lines."""
    return ["", *(_run_name(story, slot) for slot, story in enumerate(stories))]


def _run_name(story: Story, slot: int) -> Markup:
    return tag("span", tag("i"), shortened(story.name, 40), class_=f"run {slot_class(slot)}")


def overview(stories: Stories) -> Markup:
    """Score, time, data and how each ended."""
    rows: list[list[Child]] = [
        ["Outcome", *(badge(story) for story in stories)],
        ["Time", *(duration(story.environment.get("seconds")) for story in stories)],
        ["Epochs", *(shown(epochs_done(story)) for story in stories)],
        ["Began", *(moment(story.environment.get("started")) for story in stories)],
    ]
    told = [facts(story) for story in stories]
    rows += [[name, *(one[name] for one in told)] for name in told[0] if name not in ("Ended", "Classes")]
    return table(names(stories), rows, numbers=False, class_="beside", label="The Runs")


def compared_scores(stories: Stories) -> Markup:
    """The scores of the best validation of each; the best of a row stands out."""
    found = list(dict.fromkeys(name for story in stories for name in story.scores))
    if not found:
        return note("None of them has a validation, so there are no scores.")
    rows = [_score_row(stories, name) for name in found[:MOST_ROWS]]
    hidden = f" {len(found) - MOST_ROWS:,} more scores are in the pages of each." if len(found) > MOST_ROWS else ""
    told = note(f"Of the best validation of each Run, by the score that its checkpoints were chosen by.{hidden}")
    return joined([table(names(stories), rows, class_="beside", label="Scores"), told])


def _score_row(stories: Stories, name: str) -> list[Child]:
    values = [number(story.scores.get(name)) for story in stories]
    best = best_of(values, larger_is_better=_larger_is_better(stories, name))
    cells = [tag("td", score_text(value), class_="best" if value == best else None) for value in values]
    return [shortened(words(name), 60), *cells]


def _larger_is_better(stories: Stories, name: str) -> bool:
    """As a Run says of its goal; else a loss or an error is better when it is small."""
    said = [story.larger_is_better for story in stories if story.goal == name]
    return said[0] if said else not name.endswith(("loss", "error"))


def best_of(values: Sequence[float], *, larger_is_better: bool) -> float | None:
    """The best of several numbers; None where they do not differ."""
    finite = {value for value in values if math.isfinite(value)}
    if len(finite) < 2:
        return None
    return max(finite) if larger_is_better else min(finite)


def compared_curves(stories: Stories) -> Markup:
    """The lines of all Runs, one chart for each metric."""
    return _by_stage(stories, _curves)


def _curves(stories: Stories) -> Markup:
    charts = chart_grid(compared_charts(stories))
    return charts if charts is not None else note("Nothing was logged that could be drawn.")


def _by_stage(stories: Stories, tell: Callable[[Stories], Markup]) -> Markup:
    """What is told of the Runs, or of each stage where all of them have some."""
    if not all(story.stages for story in stories):
        return tell(stories)
    found = dict.fromkeys(stage.name for story in stories for stage in story.stages)
    return joined(
        [joined([tag("h3", f"Stage {name}"), tell([_stage(one, name) for one in stories])]) for name in found]
    )


def _stage(story: Story, name: str) -> Story:
    """A stage under the name of its Run; one that was not trained has nothing to tell, and keeps its column."""
    nothing = replace(story, metrics=[], feed=[], stages=())
    return replace(next((stage for stage in story.stages if stage.name == name), nothing), name=story.name)


def compared_settings(stories: Stories) -> Markup:
    """Settings that differ, and those that do not folded away."""
    by_run = [{one.path: one for one in run_settings(story)} for story in stories]
    paths = [path for path in dict.fromkeys(path for one in by_run for path in one) if path not in LEFT_OUT]
    differing = [path for path in paths if len({_text(one.get(path)) for one in by_run}) > 1]
    rows = [_setting_row(path, by_run, is_marked=True) for path in differing]
    same = [_setting_row(path, by_run) for path in paths if path not in differing]
    head = names(stories)
    told = (
        table(head, rows, numbers=False, class_="beside", label="Settings that differ")
        if rows
        else note("None differ.")
    )
    return joined(
        [told, folded(f"{len(same):,} settings are the same", table(head, same, numbers=False, label="Same settings"))]
        if same
        else [told]
    )


def _text(setting: Setting | None) -> str:
    return MISSING if setting is None else setting.text


def _setting_row(
    path: tuple[str, str], by_run: Sequence[dict[Any, Setting]], *, is_marked: bool = False
) -> list[Child]:
    texts = [_text(one.get(path)) for one in by_run]
    usual = max(texts, key=texts.count)
    is_usual = [text == usual and texts.count(usual) > 1 for text in texts]
    cells = [
        tag("td", tag("code", shortened(text, 80)), class_="differs" if is_marked and not same else None)
        for text, same in zip(texts, is_usual, strict=True)
    ]
    return [setting_name(*path), *cells]


def compared_classes(stories: Stories) -> Markup | None:
    """F1 of each class in each Run, where they have classes in common."""
    by_run = [{str(row.get("class")): number(row.get("f1")) for row in class_rows(story)} for story in stories]
    if sum(1 for one in by_run if one) < 2:
        return None
    found = list(dict.fromkeys(name for one in by_run for name in one))
    spread = sorted(found, key=lambda name: -_spread([one.get(name, math.nan) for one in by_run]))
    rows = [[shortened(name, 60), *(score_cell(one.get(name)) for one in by_run)] for name in spread]
    parts = [note("F1 of each class; those that differ most first."), _class_table(stories, rows[:MOST_ROWS])]
    if len(rows) > MOST_ROWS:
        parts.append(folded(f"{len(rows) - MOST_ROWS:,} more classes", _class_table(stories, rows[MOST_ROWS:])))
    return joined(parts)


def _class_table(stories: Stories, rows: Sequence[Sequence[Child]]) -> Markup:
    return table(names(stories), rows, class_="beside", label="F1 of each class")


def _spread(values: Sequence[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return max(finite) - min(finite) if finite else 0.0


def compared_feeds(stories: Stories) -> Markup:
    """Rate, waiting and the CPU time of each hop."""
    return _by_stage(stories, _feeds)


def _feeds(stories: Stories) -> Markup:
    totals = [feed_totals(story.feed) for story in stories]
    if not any(totals):
        return note("Nothing was logged of the feeds.")
    hops = next(one for one in totals if one is not None).hops
    rows: list[list[Child]] = [
        ["limit", *_told(totals, lambda one: one.limit)],
        ["samples per second", *_told(totals, lambda one: shown(one.samples_per_second, 3))],
        ["waiting for data", *_told(totals, lambda one: percent(one.waiting_share))],
    ]
    for place, hop in enumerate(hops):
        rows.append([f"{hop.name}, CPU ms a sample", *_told(totals, lambda one, at=place: _cost(one, at))])  # type: ignore[misc]
    return table(names(stories), rows, class_="beside", label="How the feeds did")


def _cost(totals: FeedTotals, place: int) -> str:
    return f"{totals.hops[place].cpu_milliseconds:,.3f}"


def _told(totals: Sequence[FeedTotals | None], tell: Callable[[FeedTotals], str]) -> list[str]:
    return [MISSING if one is None else tell(one) for one in totals]
