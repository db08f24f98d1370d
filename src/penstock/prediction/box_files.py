"""Boxes from files of any format, compared: predictions and truth, images and classes matched by name."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.map_files import check_drivers
from penstock.errors import DataError, OptionError, Problem
from penstock.formats.boxes.annotation_files import read_rows
from penstock.formats.boxes.locating import NotFound, make_finder, read_sizes
from penstock.formats.boxes.rows import ImageName, Rows, numbered
from penstock.formats.reading import ReadingOptions
from penstock.results.box_scores import MATCH_IOU, BoxScores, ImageBoxes, score_boxes

if TYPE_CHECKING:
    import pandas as pd


# Which image of the truth a prediction is about: by as much of its path as both of them write.


_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{1,4}$")
Address = tuple[str, ...]


class ImageNames:
    """The images of the truth; each is found by the name that is written for it, or by that of its file of boxes."""

    def __init__(self, images: Sequence[ImageName]) -> None:
        self.images = images
        self._by_stem: dict[str, dict[int, list[Address]]] = defaultdict(dict)
        for number, image in enumerate(images):
            for address in addresses(image):
                self._by_stem[_stem(address[0])].setdefault(number, []).append(address)

    def find(self, image: ImageName) -> list[int]:
        """The images that it may be: one, none, or several that no more of the path tells apart."""
        for address in addresses(image):
            found = self._by_stem.get(_stem(address[0]))
            if found:
                closeness = {number: max(_closeness(address, other) for other in found[number]) for number in found}
                closest = max(closeness.values())
                return [number for number, value in closeness.items() if value == closest]
        return []


def addresses(image: ImageName) -> list[Address]:
    """Names from the last to the first folder: of the image as written, and of the file of boxes about it."""
    if image.file is not None:
        return [image.file.parts[::-1]]
    names = [name for name in (image.name.replace("\\", "/"), image.stem) if name]
    return list(dict.fromkeys((image.folder / name).parts[::-1] for name in names))


def written(image: ImageName) -> str:
    """The name of an image as users know it."""
    return image.name or image.stem or (str(image.file) if image.file else "")


def same_images(predicted: Sequence[ImageName], true: Sequence[ImageName], table: str) -> list[int | None]:
    """For each image with predictions the one of the truth that it is, None for an image that the truth has not."""
    names = ImageNames(true)
    found: list[int | None] = []
    taken: dict[int, ImageName] = {}
    problems: list[Problem] = []
    for image in predicted:
        candidates = names.find(image)
        if len(candidates) > 1:
            problems.append(_ambiguous(table, image, [true[number] for number in candidates]))
        elif candidates and taken.setdefault(candidates[0], image) != image:
            problems.append(_twice(table, image, taken[candidates[0]], true[candidates[0]]))
        found.append(candidates[0] if len(candidates) == 1 else None)
    if problems:
        raise DataError(problems)
    if predicted and all(number is None for number in found):
        raise DataError([_strangers(table, predicted[0], true[0])])
    return found


def _stem(name: str) -> str:
    return _ENDING.sub("", name)


def _closeness(one: Address, other: Address) -> tuple[int, bool]:
    """How many folders agree, counted from the image; then whether the ending does."""
    agreeing = 0
    for mine, theirs in zip(one[1:], other[1:], strict=False):
        if mine != theirs:
            break
        agreeing += 1
    return agreeing, one[0] == other[0]


def _ambiguous(table: str, image: ImageName, candidates: Sequence[ImageName]) -> Problem:
    places = " or ".join(str(Path(candidate.folder, written(candidate))) for candidate in candidates[:2])
    return Problem(table, None, f"the image {written(image)!r} may be {places}", "Write more of its path")


def _twice(table: str, image: ImageName, other: ImageName, true: ImageName) -> Problem:
    places = " and ".join(str(Path(each.folder, written(each))) for each in (other, image))
    what = f"{places} would both be {written(true)!r} of the truth"
    return Problem(table, None, what, "Write more of the paths, in the truth too, or leave one out")


def _strangers(table: str, predicted: ImageName, true: ImageName) -> Problem:
    what = f"no image with predictions is in the truth: {written(predicted)!r} here, {written(true)!r} there"
    return Problem(table, None, what, "Name the images alike; their endings may differ")


# Endings of files whose boxes are in pixels, unless they are fractions.
_IN_PIXELS = (".csv", ".tsv", ".txt", ".xml")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Predictions and truth over the same images and classes.

    names          the images                         listed   which of them the truth lists, with boxes or without
    needs_images   the files of the images may have been looked for: boxes are fractions of them, or on a map
    """

    predictions: ImageBoxes
    truth: ImageBoxes
    names: tuple[ImageName, ...]
    listed: NDArray[np.bool_]
    classes: tuple[str, ...]
    needs_images: bool = True

    @property
    def images(self) -> tuple[str, ...]:
        """The images as they are written."""
        return tuple(written(name) for name in self.names)


def read_comparison(predictions: Any, truth: Any, options: ReadingOptions | None = None) -> Comparison:
    """Read both; every problem of the truth, or else of the predictions, is raised at once.

    `options` are about the files of the images, which only YOLO's fractions and layers on a map need.
    """
    options = options or ReadingOptions()
    true = _read(truth, options)
    true_numbers, true_images = numbered(true.images)
    if not true_images:
        raise DataError([Problem(_place(true), None, "the truth names no image", "Add rows")])
    true_classes = tuple(sorted(set(true.labels)))
    # Numbers without names in the predictions are those of the truth's own list, if it has one.
    named = true.listed_classes or tuple(name for name in true_classes if name)
    predicted = _read(predictions, replace(options, classes=named or None))
    predicted_numbers, unlisted = _predicted_images(predicted, true_images)
    classes = tuple(sorted({*true_classes, *predicted.labels}))
    names = (*true_images, *unlisted)
    return Comparison(
        predictions=_image_boxes(predicted, predicted_numbers, classes, scored=True),
        truth=_image_boxes(true, true_numbers, classes, scored=False),
        names=names,
        listed=np.arange(len(names)) < len(true_images),
        classes=classes,
        needs_images=_needs_images(true) or _needs_images(predicted),
    )


def read_predictions(predictions: Any, options: ReadingOptions) -> Comparison:
    """Predictions alone: a comparison with no truth, in which no image is listed."""
    rows = _read(predictions, options)
    numbers, names = numbered(rows.images)
    classes = tuple(sorted(set(rows.labels)))
    nothing = ImageBoxes(np.zeros(0, np.int64), np.zeros((0, 4)), np.zeros(0, np.int64))
    boxes = _image_boxes(rows, numbers, classes, scored=True)
    return Comparison(boxes, nothing, names, np.zeros(len(names), bool), classes)


def _predicted_images(rows: Rows, true_images: Sequence[ImageName]) -> tuple[NDArray[np.int64], list[ImageName]]:
    """The number of every image that has predictions, and the images that the truth does not list."""
    used = np.unique(rows.image[_has_box(rows)])
    codes, images = numbered(rows.images[number] for number in used)
    found = same_images(images, true_images, _place(rows))
    unlisted = [image for image, number in zip(images, found, strict=True) if number is None]
    free = iter(range(len(true_images), len(true_images) + len(unlisted)))
    joined = np.array([next(free) if number is None else number for number in found], np.int64)
    numbers = np.full(len(rows.images), -1, np.int64)
    numbers[used] = joined[codes]
    return numbers, unlisted


def _image_boxes(rows: Rows, images: NDArray[np.int64], classes: Sequence[str], *, scored: bool) -> ImageBoxes:
    has_box = _has_box(rows)
    numbers = np.array([*(classes.index(name) for name in rows.labels), -1], np.int64)
    nothing_scored = has_box.any() and np.isnan(rows.score[has_box]).all()
    return ImageBoxes(
        images=images[rows.image[has_box]],
        boxes=rows.box[has_box],
        labels=numbers[rows.label[has_box]],
        scores=None if not scored or nothing_scored else _all_scored(rows, has_box),
    )


def _needs_images(rows: Rows) -> bool:
    """Not certain for JSON and Parquet, which may be layers."""
    plain = all(Path(table).suffix.lower() in _IN_PIXELS for table in rows.tables)
    return bool(rows.fractions.any()) or not plain


def _has_box(rows: Rows) -> NDArray[np.bool_]:
    return ~np.isnan(rows.box[:, 0])


def _all_scored(rows: Rows, has_box: NDArray[np.bool_]) -> NDArray[np.float64]:
    lacking = np.flatnonzero(has_box & ~np.isfinite(rows.score))
    if len(lacking):
        remedy = "Write a number in every row, or leave the column out"
        raise DataError(
            [Problem(*rows.where(int(row)), "the row has no score, and others have", remedy) for row in lacking]
        )
    return rows.score[has_box]


def _read(annotations: Any, options: ReadingOptions) -> Rows:
    """Rows in pixels whose boxes have area; everything that is wrong is raised together."""
    rows = read_rows(annotations, options)
    problems = [problem for problem in rows.problems if not problem.warning]
    rows, missing = _in_pixels(rows, options)
    problems += [*missing, *_without_area(rows)]
    if problems:
        raise DataError(problems)
    return rows


def _without_area(rows: Rows) -> list[Problem]:
    x1, y1, x2, y2 = rows.box.T
    problems = []
    for row in np.flatnonzero((x2 <= x1) | (y2 <= y1)):
        corners = ", ".join(f"{value:g}" for value in rows.box[row])
        what = f"the box {corners} has no area; expected x1 < x2 and y1 < y2"
        problems.append(Problem(*rows.where(int(row)), what, "Correct the row, or write 0,0,0,0 for no box"))
    return problems


def _in_pixels(rows: Rows, options: ReadingOptions) -> tuple[Rows, list[Problem]]:
    """Fractions times the sizes of their images; an image that is needed and not there is a problem."""
    files, problems = _needed_images(rows, options)
    found, reasons = read_sizes(
        list(files.values()),
        np.ones(len(files), bool),
        any_raster=bool(options.allow_drivers),
        allow_drivers=options.allow_drivers,
    )
    problems += [Problem(str(list(files.values())[at]), None, reason, "Replace it") for at, reason in reasons.items()]
    sizes = np.ones((len(rows.images) + 1, 2))
    sizes[list(files)] = found
    scale = np.where(rows.fractions[:, None], np.tile(sizes[rows.image], 2), 1.0)
    return replace(rows, box=rows.box * scale), problems


def _needed_images(rows: Rows, options: ReadingOptions) -> tuple[dict[int, Path], list[Problem]]:
    """The files of images without which boxes cannot be had in pixels: of fractions, and of features on a map."""
    reported = {(problem.file, problem.row) for problem in rows.problems}
    broken = [int(row) for row in np.flatnonzero(rows.broken) if rows.where(int(row)) not in reported]
    unplaced = rows.image[broken]
    needed = np.union1d(rows.image[rows.fractions & _has_box(rows)], unplaced[unplaced >= 0])
    finder = make_finder(options)
    files: dict[int, Path] = {}
    problems: list[Problem] = []
    for number in needed.tolist():
        try:
            files[number] = finder.find(rows.images[number])
        except NotFound as error:
            problems.append(Problem(_place(rows), None, error.what, error.remedy))
    return files, problems


def _place(rows: Rows) -> str:
    """The one file, or the folder of many."""
    return rows.tables[0] if len(set(rows.tables)) == 1 else str(Path(rows.tables[0]).parent)


# Scores of boxes made by anything, from files or tables: what `penstock evaluate FILE --truth GLOB` does.


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
            raise OptionError(f"iou={self.iou} must lie from 0 to below 1, such as {MATCH_IOU}.")


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
