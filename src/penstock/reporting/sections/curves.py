"""Loss, scores and learning rate while training."""

from __future__ import annotations

from penstock.reporting.curves import chart_grid, run_charts
from penstock.reporting.markup import Markup, note
from penstock.reporting.stories import Story


def curves(story: Story) -> Markup:
    """Charts by epoch; the dotted line is the best validation."""
    charts = chart_grid(run_charts(story))
    return charts if charts is not None else note("Nothing was logged that could be drawn.")
