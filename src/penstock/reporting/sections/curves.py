"""Loss, scores and learning rate while training."""

from __future__ import annotations

from penstock.reporting.curves import chart_grid, run_charts, single_values
from penstock.reporting.markup import Markup, joined, note, tag
from penstock.reporting.stories import Story


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
