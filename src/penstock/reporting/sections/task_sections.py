"""The sections on what was learned: classes and behaviours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.reporting.ethogram_pictures import Lane, Stretches, ethogram_picture, lanes_of
from penstock.reporting.heat_maps import MOST_CELLS_ACROSS, confusion_counts, confusion_map, most_confused, row_shares
from penstock.reporting.page import Child, Markup, folded, joined, note, shortened, table, tag
from penstock.reporting.stories import Story
from penstock.reporting.wording import MISSING, number, percent, score_text, shown, words
from penstock.results.bouts import BACKGROUND

# Classification, class by class: what was taken for what, and the scores of each.


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


# Behaviour: the scores of each, what was taken for what, and ethograms with truth above prediction.
#
# A Run tells of them in details.json: `behaviours`, `behaviour_confusion` and `ethograms`, as
# `results.behaviour_scores` and `results.ethogram_details` write them.


SCORES = {
    "f1": "F1",
    "precision": "precision",
    "recall": "recall",
    "accuracy": "accuracy",
    "auroc": "AUROC",
    "average_precision": "average precision",
    "bout_f1": "bout F1",
}
OPEN_PICTURES = 4


def behaviours(story: Story) -> Markup | None:
    """Scores and threshold of each behaviour, in the order of the task."""
    found = _mappings(story.details.get("behaviours"))
    if not found:
        return None
    rows = [_behaviour_row(name, scores) for name, scores in found.items()]
    head = ["behaviour", "frames", *SCORES.values(), "threshold"]
    absent = [name for name, scores in found.items() if number(scores.get("frames")) == 0]
    own = note(_TRAINING_DATA) if story.details.get("judged_on") == "training" else None
    remark = f"{', '.join(absent)} never occurred in the validation and has no score." if absent else ""
    return joined(
        [own, table(head, rows, label="Scores of each behaviour"), note(remark) if remark else None, note(_BOUT_RULE)]
    )


_TRAINING_DATA = (
    "These are the data that it was trained on: there was no validation, and other videos will be scored lower."
)
_BOUT_RULE = "A bout counts as found when a predicted bout shares more than half of the time that both cover."


def behaviour_confusion(story: Story) -> Markup | None:
    """What was taken for what."""
    given = story.details.get("behaviour_confusion")
    names = given.get("behaviours") if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping) or not isinstance(names, list):
        return None
    counts = confusion_counts(given.get("counts"), len(names))
    if counts is None:
        return note("details.json holds no table of behaviours that fits their names.")
    rule = (
        "Frames: on the diagonal a behaviour was found; beside it, it was missed while another was predicted that is "
        "not there."
    )
    return joined([confusion_map(counts, [str(name) for name in names]), note(rule)])


def ethograms(story: Story) -> Markup | None:
    """A picture for each video; the first ones are open."""
    given = story.details.get("ethograms")
    entries = [entry for entry in given if isinstance(entry, Mapping)] if isinstance(given, list) else []
    pictures = [picture for entry in entries if (picture := _picture(entry)) is not None]
    if not pictures:
        return None
    first, more = pictures[:OPEN_PICTURES], pictures[OPEN_PICTURES:]
    rest = folded(f"{len(more):,} more videos", *more) if more else None
    return joined([_legend(entries), *first, rest])


def _behaviour_row(name: str, scores: Mapping[str, Any]) -> list[Child]:
    # Background is what is left over, so it has no threshold.
    threshold = MISSING if name == BACKGROUND else score_text(scores.get("threshold"))
    cells = [score_cell(scores.get(score)) for score in SCORES]
    return [shortened(name, 60), shown(scores.get("frames")), *cells, threshold]


def _legend(entries: list[Mapping[str, Any]]) -> Markup:
    items = [
        tag("li", tag("i", class_="truth-mark"), "truth, above"),
        tag("li", "predicted, below, each behaviour in its own colour"),
    ]
    if not any("truth" in entry for entry in entries):
        items = items[1:]
    if any(stretches for entry in entries for stretches in _by_behaviour(entry.get("unlabelled")).values()):
        items.append(tag("li", tag("i", class_="unlabelled-mark"), "not labelled"))
    return tag("ul", items, class_="legend blocks s0")


def _picture(entry: Mapping[str, Any]) -> Markup | None:
    truth = _by_behaviour(entry["truth"]) if "truth" in entry else None
    lanes = lanes_of(_by_behaviour(entry.get("predicted")), truth, _by_behaviour(entry.get("unlabelled")))
    behaving: list[Lane] = [lane for lane in lanes if lane.name != BACKGROUND] or lanes
    return ethogram_picture(str(entry.get("video", "")), number(entry.get("duration_s")), behaving)


def _by_behaviour(value: Any) -> dict[str, Stretches]:
    if not isinstance(value, Mapping):
        return {}
    return {str(name): _stretches(pairs) for name, pairs in value.items()}


def _stretches(value: Any) -> list[tuple[float, float]]:
    """The pairs of seconds that a file holds; whatever else it holds tells nothing."""
    pairs = [pair for pair in value if isinstance(pair, list) and len(pair) == 2] if isinstance(value, list) else []
    found = [(number(start), number(stop)) for start, stop in pairs]
    return [(start, stop) for start, stop in found if 0 <= start <= stop < float("inf")]


def _mappings(value: Any) -> dict[str, Mapping[str, Any]]:
    if not isinstance(value, Mapping):
        return {}
    return {str(name): scores for name, scores in value.items() if isinstance(scores, Mapping)}
