"""The samples that were answered most wrongly, as pictures."""

from __future__ import annotations

from penstock.reporting.boxed_samples import boxed_picture, has_boxes
from penstock.reporting.markup import Markup, joined, note, shortened, tag
from penstock.reporting.stories import Story
from penstock.reporting.thumbnails import thumbnail
from penstock.reporting.wording import percent, shown
from penstock.runs.run import Line

MOST_SAMPLES = 48


def wrong_samples(story: Story) -> Markup | None:
    """Pictures with what was true and what was answered, the largest loss first."""
    if not story.worst:
        return None
    figures = [_figure(story, row) for row in story.worst[:MOST_SAMPLES]]
    if any(has_boxes(row) for row in story.worst):
        told = note(
            "Of the best validation, the samples with the most mistakes. Found boxes are red, true ones yellow."
        )
        return joined([told, tag("div", figures, class_="samples wide")])
    told = note("Of the best validation, the samples with the largest loss. ✓ marks those that were answered rightly.")
    return joined([told, tag("div", figures, class_="samples")])


def _figure(story: Story, row: Line) -> Markup:
    name = str(row.get("key", row.get("index", "")))
    truth, answer = str(row.get("truth", "")) or "nothing", str(row.get("answer", "")) or "nothing"
    is_right = truth == answer
    told = f"{name[-80:]}: {truth[:80]}, answered as {answer[:80]}"
    boxed = boxed_picture(story.run.folder, row, told) if has_boxes(row) else None
    picture = boxed or thumbnail(story.run.folder, row.get("thumbnail"), told)
    verdict = tag(
        "p",
        tag("span", shortened(truth, 40), class_="truth"),
        " ✓ " if is_right else " → ",
        None if is_right else tag("span", shortened(answer, 40), class_="answer"),
        " ",
        tag("small", percent(row.get("score"))) if "score" in row else None,
    )
    place = tag("p", shortened(name, 60), class_="place", title=name[:400])
    loss = tag("p", f"loss {shown(row.get('loss'), 3)}", class_="place") if "loss" in row else None
    return tag("figure", picture, tag("figcaption", verdict, place, loss), class_="right" if is_right else "wrong")
