"""Behaviour: the scores of each, what was taken for what, and ethograms with truth above prediction.

A Run tells of them in details.json: `behaviours`, `behaviour_confusion` and `ethograms`, as
`results.behaviour_scores` and `results.ethogram_details` write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.reporting.ethogram_pictures import Lane, Stretches, ethogram_picture, lanes_of
from penstock.reporting.heat_maps import confusion_counts, confusion_map
from penstock.reporting.markup import Child, Markup, folded, joined, note, shortened, table, tag
from penstock.reporting.sections.classes import score_cell
from penstock.reporting.stories import Story
from penstock.reporting.wording import MISSING, number, score_text, shown
from penstock.results.bouts import BACKGROUND

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
    rows = [_row(name, scores) for name, scores in found.items()]
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


def _row(name: str, scores: Mapping[str, Any]) -> list[Child]:
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
