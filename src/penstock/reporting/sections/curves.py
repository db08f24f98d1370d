"""Loss, scores and learning rate while training."""

from __future__ import annotations

from penstock.reporting.curves import chart_grid, run_charts
from penstock.reporting.markup import Markup, joined, note, tag
from penstock.reporting.stories import Story


def curves(story: Story) -> Markup:
    """Charts by epoch, of each stage where there are some; the dotted line is the best validation."""
    if story.stages:
        return joined([_of_stage(stage) for stage in story.stages])
    return _drawn(run_charts(story))


def _of_stage(stage: Story) -> Markup:
    charts = run_charts(stage, f"see penstock report {stage.run.folder.as_posix()}")
    return joined([tag("h3", f"Stage {stage.name}"), _drawn(charts)])


def _drawn(made: list[Markup]) -> Markup:
    charts = chart_grid(made)
    return charts if charts is not None else note("Nothing was logged that could be drawn.")
