"""Scores of boxes made by anything, from files or tables: what `penstock evaluate FILE --truth GLOB` does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.codecs.map_files import check_drivers
from penstock.errors import RecipeError
from penstock.formats.reading import ReadingOptions
from penstock.prediction.box_files import Comparison, read_comparison
from penstock.results.box_scores import MATCH_IOU, BoxScores, score_boxes

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class BoxOptions:
    """How predicted boxes are compared with true ones.

    min_score     leave out predictions below this score
    iou           a prediction matches a true box when their IoU is above this
    count_empty   predictions in images without true boxes count against precision; else those images are left out of it
    images        the folder of the images, which YOLO's fractions and layers on a map need
    allow_outside paths of images may leave that folder
    allow_drivers drivers of GDAL, such as VRT, that may open the rasters of layers beside the usual ones
    """

    min_score: float | None = None
    iou: float = MATCH_IOU
    count_empty: bool = False
    images: str | os.PathLike[str] | None = None
    allow_outside: bool = False
    allow_drivers: str | Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "allow_drivers", check_drivers(self.allow_drivers))
        if not 0 <= self.iou < 1:
            raise RecipeError(f"iou={self.iou} must lie from 0 to below 1, such as {MATCH_IOU}.")


def compared(predictions: Any, truth: Any, options: BoxOptions) -> tuple[BoxScores, Comparison]:
    """Read predictions and truth, and score them."""
    reading = ReadingOptions(
        images=None if options.images is None else Path(options.images),
        allow_outside=options.allow_outside,
        allow_drivers=tuple(options.allow_drivers),
    )
    both = read_comparison(predictions, truth, reading)
    scores = score_boxes(
        both.predictions,
        both.truth,
        image_count=len(both.images),
        classes=both.classes,
        iou=options.iou,
        min_score=options.min_score,
        count_empty=options.count_empty,
        listed=both.listed,
    )
    return scores, both


def details_of(scores: BoxScores, both: Comparison) -> dict[str, Any]:
    """What a report draws, and which images have predictions and no place in the truth."""
    unlisted = [name for name, listed in zip(both.images, both.listed, strict=True) if not listed]
    return {**scores.details(), "not_in_truth": unlisted}


def facts_of(both: Comparison, options: BoxOptions) -> dict[str, Any]:
    """Options that had nothing to do, as `notes`."""
    if both.needs_images or not (options.images or options.allow_outside or options.allow_drivers):
        return {}
    names = [name for name in ("images", "allow_outside", "allow_drivers") if getattr(options, name)]
    return {"notes": [f"{', '.join(names)} had no effect: the boxes are in pixels, so no image was looked for"]}


def image_table(scores: BoxScores, both: Comparison) -> pd.DataFrame:
    """One row for each image: how many boxes, and how well they agree."""
    import pandas as pd

    return pd.DataFrame(
        {
            "image_path": pd.Series(both.images, dtype="str"),
            "truth_boxes": scores.truth_counts,
            "predictions": scores.prediction_counts,
            "matches": scores.match_counts,
            "precision": scores.precisions,
            "recall": scores.recalls,
        }
    )
