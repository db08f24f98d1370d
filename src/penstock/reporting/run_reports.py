"""`ps.report`: one page on a Run, or on several beside each other, that needs nothing but itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from penstock.errors import OptionError
from penstock.reporting.box_pages import BoxPageOptions, box_page, is_boxes, page_of_boxes
from penstock.reporting.page import Markup, Part, page
from penstock.reporting.sections import comparison
from penstock.reporting.sections.feed import feed
from penstock.reporting.sections.run_sections import (
    bad_samples,
    badge,
    curves,
    environment,
    scores,
    settings,
    summary,
    wrong_samples,
)
from penstock.reporting.sections.task_sections import behaviour_confusion, behaviours, classes, confusion, ethograms
from penstock.reporting.stories import Story, named_stories
from penstock.runs.run import Run, as_run
from penstock.storage.locations import refuses_urls
from penstock.storage.whole_files import write_whole
from penstock.wording import counted

PAGE_NAME = "report.html"
SUFFIXES = (".html", ".htm")

# In the order of the page. A task of another kind adds functions that look at `story.details["kind"]`.
SECTIONS: tuple[tuple[str, Callable[[Story], Markup | None]], ...] = (
    ("Summary", summary),
    ("Behaviours", behaviours),  # what a behaviour training is for stands before the curves of its three stages
    ("Ethograms", ethograms),
    ("Curves", curves),
    ("Scores", scores),
    ("Confusion matrix", confusion),
    ("Classes", classes),
    ("Behaviours confused", behaviour_confusion),
    ("Most wrong samples", wrong_samples),
    ("Feed", feed),
    ("Bad samples", bad_samples),
    ("Settings", settings),
    ("Environment", environment),
)
COMPARISONS: tuple[tuple[str, Callable[[Sequence[Story]], Markup | None]], ...] = (
    ("Runs", comparison.overview),
    ("Scores", comparison.compared_scores),
    ("Curves", comparison.compared_curves),
    ("Settings that differ", comparison.compared_settings),
    ("Classes", comparison.compared_classes),
    ("Feeds", comparison.compared_feeds),
)

Told = TypeVar("Told")
OneRun = Run | str | os.PathLike[str]


@refuses_urls()
def report(
    runs: OneRun | Iterable[OneRun],
    output: str | os.PathLike[str] | None = None,
    *,
    truth: Any = None,
    images: str | os.PathLike[str] | None = None,
    min_score: float | None = None,
    allow_drivers: str | Sequence[str] = (),
) -> Path:
    """Write a page on a Run, or on several beside each other, and give its path.

    `output` is the page; by default report.html in the first Run. Its folder is made if it is not there. The page
    needs no network and no other file.

    A table, layer or DataFrame of predicted boxes may stand in place of a Run: its page shows them over their images,
    which are beside it or in the folder `images`, and with `truth` their scores; `min_score` leaves out what is below,
    `allow_drivers` names drivers of GDAL, such as VRT, that may open rasters too.
    """
    if truth is not None or is_boxes(runs):
        target = _target(page_of_boxes(runs) if output is None else Path(output))
        text = box_page(runs, BoxPageOptions(truth, images, min_score, allow_drivers))
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, text)
        return target
    if images is not None or min_score is not None or allow_drivers:
        raise OptionError(
            "images, min_score and allow_drivers belong to a page on predicted boxes, not to one on a Run."
        )
    chosen = _runs(runs)
    target = _target(chosen[0].folder / PAGE_NAME if output is None else Path(output))
    text = report_page(chosen)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, text)
    return target


def report_page(runs: Sequence[Run]) -> str:
    """The page as text; the same Runs give the same page."""
    stories = named_stories(runs)
    if len(stories) == 1:
        story = stories[0]
        return page(story.name, _kind(stories), _parts(SECTIONS, story), badge(story))
    return page(" · ".join(story.name for story in stories), _kind(stories), _parts(COMPARISONS, stories))


def _parts(sections: Sequence[tuple[str, Callable[[Told], Markup | None]]], told: Told) -> list[Part]:
    made = [(title, make(told)) for title, make in sections]
    return [Part(title, content) for title, content in made if content]


def _kind(stories: Sequence[Story]) -> str:
    kinds = dict.fromkeys(str(story.settings.get("task", {}).get("kind", "training")) for story in stories)
    count = "" if len(stories) == 1 else f", {counted(len(stories), 'run')}"
    return ", ".join(kinds) + count


def _runs(runs: OneRun | Iterable[OneRun]) -> list[Run]:
    named = [runs] if isinstance(runs, (Run, str, os.PathLike)) else list(runs)
    if not named:
        raise OptionError("report needs a Run: the folder that a training left, such as runs/pets.")
    found = [as_run(one if isinstance(one, Run) else Path(one)) for one in named]
    return list(dict.fromkeys(found))  # a Run beside itself tells nothing


def _target(path: Path) -> Path:
    """Checked before anything is read: a page must not take the place of another file."""
    if path.is_dir():
        raise OptionError(f"output={str(path)!r} is a folder. Name the page, such as {(path / PAGE_NAME).as_posix()}.")
    if path.suffix.lower() not in SUFFIXES:
        raise OptionError(f"output={str(path)!r} must end in .html. Name it {path.with_suffix('.html').name!r}.")
    return path
