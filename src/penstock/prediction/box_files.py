"""Boxes from files of any format, ready to be compared: predictions and truth, images and classes numbered alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, Problem
from penstock.formats.boxes.annotation_files import read_rows
from penstock.formats.boxes.locating import NotFound, make_finder, read_sizes
from penstock.formats.boxes.rows import ImageName, Rows, numbered
from penstock.formats.reading import ReadingOptions
from penstock.prediction.image_names import same_images, written
from penstock.results.box_scores import ImageBoxes

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
