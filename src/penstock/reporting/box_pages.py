"""A page on predicted boxes: how many, how well they agree with the truth where there is one, and pictures of them."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.images import encode_image
from penstock.codecs.map_files import check_drivers
from penstock.errors import DataError
from penstock.formats.boxes.layers import LAYER_ENDINGS
from penstock.formats.boxes.locating import NotFound, make_finder
from penstock.formats.rasters.raster_options import PixelOptions
from penstock.formats.reading import ReadingOptions
from penstock.formats.tables import TABLE_ENDINGS
from penstock.prediction.box_files import Comparison, read_comparison, read_predictions
from penstock.reporting.box_plots import Picture, small_image
from penstock.reporting.heat_maps import MOST_CELLS_ACROSS, confusion_map
from penstock.reporting.page import Markup, Part, joined, note, page, shortened, table, tag
from penstock.reporting.pictures import draw_boxes
from penstock.reporting.wording import listed, score_text, shown, words
from penstock.results.box_scores import BoxScores, f1, score_boxes
from penstock.wording import counted

MOST_PICTURES = 24
PICTURE_PX = 480
PICTURE_QUALITY = 80
BOX_ENDINGS = frozenset({*TABLE_ENDINGS, *LAYER_ENDINGS, ".json", ".xml"})
# Crowns want larger pictures than photos of one thing.
WIDE = "grid-template-columns:repeat(auto-fill,minmax(18rem,1fr))"
TALL = "height:auto;max-height:24rem"
# The two colours of a picture, by their number in the palette.
PREDICTED, TRUE = 0, 1


@dataclass(frozen=True)
class BoxPageOptions:
    """What the predicted boxes are compared with, where their images are, and which of them count."""

    truth: Any = None
    images: str | os.PathLike[str] | None = None
    min_score: float | None = None
    allow_drivers: str | Sequence[str] = ()

    @property
    def reading(self) -> ReadingOptions:
        """How files are found and opened."""
        images = None if self.images is None else Path(self.images)
        return ReadingOptions(images=images, allow_drivers=check_drivers(self.allow_drivers))


def is_boxes(given: Any) -> bool:
    """Whether this is a table or file of boxes, and no Run."""
    if hasattr(given, "columns"):
        return True
    return isinstance(given, (str, os.PathLike)) and Path(given).suffix.lower() in BOX_ENDINGS


def page_of_boxes(given: Any) -> Path:
    """Where the page goes when nobody says: beside the file, under its name."""
    is_path = isinstance(given, (str, os.PathLike)) and "*" not in os.fspath(given)
    return Path(given).with_suffix(".html") if is_path else Path("boxes.html")


def box_page(predictions: Any, options: BoxPageOptions) -> str:
    """The page as text."""
    if options.truth is None:
        both = read_predictions(predictions, options.reading)
    else:
        both = read_comparison(predictions, options.truth, options.reading)
    scores = score_boxes(
        both.predictions,
        both.truth,
        image_count=len(both.names),
        classes=both.classes,
        min_score=options.min_score,
        listed=both.listed,
    )
    has_truth = options.truth is not None
    made = {
        "Scores": _scores(scores) if has_truth else None,
        "Boxes": _counts(scores, both),
        "Classes": _classes(scores, has_truth),
        "Found as": _found_as(scores) if has_truth else None,
        "Images": _pictures(scores, both, options),
    }
    title = Path(predictions).name if isinstance(predictions, (str, os.PathLike)) else "predicted boxes"
    return page(title, "boxes", [Part(name, content) for name, content in made.items() if content])


def _scores(scores: BoxScores) -> Markup:
    rows = [[shortened(words(name), 60), score_text(value)] for name, value in scores.scores().items()]
    told = note("Precision and recall of boxes are means over images; a match has an IoU above 0.4.")
    return joined([told, table(["", "score"], rows, class_="narrow", label="Scores")])


def _counts(scores: BoxScores, both: Comparison) -> Markup:
    rows: list[list[object]] = [["images", shown(len(both.names))], ["predicted boxes", shown(len(scores.kept))]]
    if len(both.truth):
        matches = int(scores.match_counts.sum())
        rows += [["true boxes", shown(len(both.truth))], ["found", shown(matches)]]
    return table([], rows, class_="narrow", label="How many boxes")


def _classes(scores: BoxScores, has_truth: bool) -> Markup | None:
    by_class = scores.details()["classes"]
    if not by_class:
        return None
    names = ("predictions", "truth_boxes", "precision", "recall", "f1", "ap50") if has_truth else ("predictions",)
    rows = [[shortened(name, 60), *(_value(facts[key]) for key in names)] for name, facts in by_class.items()]
    return table(["class", *(words(key) for key in names)], rows, label="Classes")


def _value(value: float) -> str:
    return score_text(value) if isinstance(value, float) else shown(value)


def _found_as(scores: BoxScores) -> Markup | None:
    if not 2 <= len(scores.classes) < MOST_CELLS_ACROSS:
        return None
    told = note("True boxes in rows, what they were found as in columns; nothing stands for missed and for false ones.")
    return joined([told, confusion_map(scores.found_as.astype(np.float64), [*scores.classes, "nothing"])])


def _pictures(scores: BoxScores, both: Comparison, options: BoxPageOptions) -> Markup:
    finder = make_finder(options.reading)
    pixels = PixelOptions(allow_drivers=options.reading.allow_drivers)
    figures: list[Markup] = []
    missing: list[str] = []
    for number in _most_telling(scores):
        if len(figures) == MOST_PICTURES:
            break
        try:
            figures.append(
                _figure(scores, both, int(number), small_image(finder.find(both.names[number]), PICTURE_PX, pixels))
            )
        except (NotFound, DataError):
            missing.append(both.images[number])
    order = (
        "Predicted boxes are red, true ones yellow; the worst images first." if len(both.truth) else "Fullest first."
    )
    told = [note(order) if figures else None, _missing(missing)]
    return joined([*told, tag("div", figures, class_="samples", style=WIDE)])


def _missing(names: list[str]) -> Markup | None:
    """A page without some of its pictures is better than none, and says so."""
    if not names:
        return None
    images = counted(len(names), "image")
    return note(
        f"{images} not found or not readable: ",
        shortened(listed(names, 5)),
        ". Name their folder (images).",
    )


def _most_telling(scores: BoxScores) -> NDArray[np.int64]:
    """Images by how badly they were answered, then by how many boxes they have."""
    badness = [f1(precision, recall) for precision, recall in zip(scores.precisions, scores.recalls, strict=True)]
    return np.lexsort((-scores.prediction_counts, np.nan_to_num(badness, nan=2.0)))


def _figure(scores: BoxScores, both: Comparison, number: int, image: tuple[Picture, float]) -> Markup:
    picture, factor = image
    true = both.truth.boxes[both.truth.images == number] * factor
    predicted = both.predictions.boxes[scores.kept][both.predictions.images[scores.kept] == number] * factor
    draw_boxes(picture, true, np.full(len(true), TRUE), ())
    draw_boxes(picture, predicted, np.full(len(predicted), PREDICTED), ())
    data = base64.b64encode(encode_image(picture, "jpeg", PICTURE_QUALITY)).decode()
    name = both.images[number]
    counts = f"{len(predicted):,} predicted" + (f", {len(true):,} true" if len(both.truth) else "")
    precision, recall = score_text(scores.precisions[number]), score_text(scores.recalls[number])
    verdict = tag("p", f"precision {precision}, recall {recall}", class_="place") if len(both.truth) else None
    caption = tag("figcaption", tag("p", counts), verdict, tag("p", shortened(name, 60), class_="place"))
    source = f"data:image/jpeg;base64,{data}"
    return tag("figure", tag("img", src=source, alt=f"{name[-80:]}: {counts}", style=TALL), caption)
