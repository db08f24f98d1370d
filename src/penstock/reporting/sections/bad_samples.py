"""Samples that could not be read, and why."""

from __future__ import annotations

from penstock.reporting.markup import Markup, joined, note, shortened, table
from penstock.reporting.stories import Story
from penstock.runs.layout import SAMPLES
from penstock.wording import counted

MOST_ROWS = 100


def bad_samples(story: Story) -> Markup | None:
    """A table of the first hundred."""
    if not story.bad_samples:
        return None
    rows = [
        [shortened(row.get("key", row.get("index", ""))), shortened(row.get("reason", ""), 300)]
        for row in story.bad_samples[:MOST_ROWS]
    ]
    hidden = len(story.bad_samples) - len(rows)
    count = note(f"{counted(len(story.bad_samples), 'sample')} could not be read; others took their places.")
    more = note(f"{hidden:,} more are in {SAMPLES}.") if hidden else None
    return joined([count, table(["sample", "reason"], rows, numbers=False, label="Bad samples"), more])
