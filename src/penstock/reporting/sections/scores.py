"""Scores: of the best and the last validation, and of every epoch."""

from __future__ import annotations

from penstock.reporting.markup import Markup, folded, joined, note, shortened, table, tag
from penstock.reporting.stories import Story, is_loss, is_score
from penstock.reporting.wording import score_text, shown, words

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
