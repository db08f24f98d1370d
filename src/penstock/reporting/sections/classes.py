"""Classification, class by class: what was taken for what, and the scores of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.reporting.heat_maps import MOST_CELLS_ACROSS, confusion_counts, confusion_map, most_confused, row_shares
from penstock.reporting.markup import Markup, folded, joined, note, shortened, table, tag
from penstock.reporting.stories import Story
from penstock.reporting.wording import number, percent, score_text, shown, words

KIND = "classification"
MOST_PAIRS = 12
MOST_ROWS = 24
SUPPORT = "support"


def confusion(story: Story) -> Markup | None:
    """The matrix, and the pairs that were confused most."""
    if story.details.get("kind") != KIND or "confusion" not in story.details:
        return None
    counts = confusion_counts(story.details["confusion"], len(story.classes))
    if counts is None:
        return note("details.json holds no confusion matrix that fits its classes.")
    pairs = most_confused(counts, MOST_PAIRS)
    shares = row_shares(counts)
    rows = [
        [*_pair(story.classes[truth], story.classes[answer]), shown(count), percent(shares[truth, answer])]
        for truth, answer, count in pairs
    ]
    head = ["true", tag("span", "answered", class_="words"), "samples", "of its class"]
    matrix = confusion_map(counts, story.classes)
    told = table(head, rows, label="Most confused classes") if rows else note("Every answer was right.")
    if len(story.classes) > MOST_CELLS_ACROSS:
        told = joined(
            [note("Classes in the order of the table below; the stronger the colour, the larger the share."), told]
        )
    return tag("div", matrix, tag("div", tag("h3", "Most confused"), told), class_="split")


def classes(story: Story) -> Markup | None:
    """Scores of each class, the weakest first."""
    rows = class_rows(story)
    if not rows:
        return None
    names = [name for name in rows[0] if name not in ("class", SUPPORT)]
    weakest = sorted(rows, key=lambda row: _strength(row, names))
    made = [_row(row, names) for row in weakest]
    head = ["class", "samples", *(words(name) for name in names)]
    parts = [table(head, made[:MOST_ROWS], label="Scores of each class")]
    if len(made) > MOST_ROWS:
        more = table(head, made[MOST_ROWS:], label="Scores of more classes")
        parts.append(folded(f"{len(made) - MOST_ROWS:,} more classes", more))
    return joined(parts)


def _pair(truth: str, answer: str) -> tuple[Markup, Markup]:
    return shortened(truth, 40), tag("td", "→ ", shortened(answer, 40), class_="words")


def class_rows(story: Story) -> list[dict[str, Any]]:
    """What a validation said of each class."""
    rows = story.details.get("per_class") if story.details.get("kind") == KIND else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _strength(row: dict[str, Any], names: Sequence[str]) -> float:
    """F1 where it is told; classes that cannot be judged stand last."""
    value = number(row.get("f1" if "f1" in names else names[0] if names else ""))
    return value if value == value else 2.0


def _row(row: dict[str, Any], names: Sequence[str]) -> list[object]:
    return [
        shortened(row.get("class", ""), 60),
        shown(row.get(SUPPORT)),
        *(score_cell(row.get(name)) for name in names),
    ]


def score_cell(value: Any) -> Markup:
    """A score with a bar behind it."""
    found = number(value)
    share = min(max(found, 0.0), 1.0) if found == found else 0.0
    return tag("td", score_text(value), class_="gauge", style=f"--share:{share:.3f}")
