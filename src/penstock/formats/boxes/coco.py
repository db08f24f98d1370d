"""COCO JSON: `bbox` is x, y, width, height in pixels; an object with polygons alone takes their bounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import DataError, Problem, nearest
from penstock.formats.boxes.rows import ImageName, Rows, make_rows, numbered
from penstock.storage.documents import load_json
from penstock.storage.plain_files import read_file

_NO_BOX = [np.nan] * 4


def coco_rows(file: Path, document: dict[str, Any]) -> Rows:
    """Rows of one COCO file; an image without annotations is a negative. Lines are numbers of annotations from 1."""
    reader = _CocoReader(file, document)
    for number, annotation in enumerate(_records(file, document, "annotations", optional=True), start=1):
        reader.add(number, annotation)
    return reader.rows()


def read_json(file: Path) -> dict[str, Any]:
    """A JSON file that holds an object."""
    try:
        document = load_json(read_file(file))
    except OSError as error:
        raise DataError([Problem(str(file), None, f"cannot be read: {error.strerror}", "Check the path")]) from error
    except json.JSONDecodeError as error:
        what = f"is no whole JSON: {error.msg}"
        raise DataError([Problem(str(file), error.lineno, what, "Export the file again")]) from error
    except UnicodeDecodeError as error:
        raise DataError([Problem(str(file), None, "is not a text in UTF-8", "Export the file again")]) from error
    if not isinstance(document, dict):
        raise DataError([Problem(str(file), None, f"holds a {type(document).__name__}, not an object", _EXPECTED)])
    return document


_EXPECTED = "Expected a COCO file with images, annotations and categories, or GeoJSON"


def _records(file: Path, document: dict[str, Any], key: str, *, optional: bool = False) -> list[dict[str, Any]]:
    records = document.get(key, [] if optional else None)
    if isinstance(records, list) and all(isinstance(record, dict) for record in records):
        return records
    what = f"has no list {key!r}; its keys are {', '.join(document)}" if key not in document else f"{key!r} is no list"
    raise DataError([Problem(str(file), None, what, _EXPECTED + nearest(key, list(document)))])


class _CocoReader:
    """Collects the rows of one file."""

    def __init__(self, file: Path, document: dict[str, Any]) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.crowds = 0
        images = _records(file, document, "images")
        categories = _records(file, document, "categories", optional=True)
        self.names = [ImageName(str(image.get("file_name") or ""), file.parent) for image in images]
        self.numbers = {image.get("id"): number for number, image in enumerate(images)}
        self.categories = {category.get("id"): str(category.get("name", "")) for category in categories}
        self.found: list[tuple[int, int, str, list[float], bool]] = []
        self.scores: list[float] = []
        for number, name in enumerate(self.names, start=1):
            if not name.name:
                self.problems.append(Problem(str(file), None, f"image {number} has no file_name", "Write it"))

    def add(self, number: int, annotation: dict[str, Any]) -> None:
        image = self.numbers.get(annotation.get("image_id"))
        if image is None:
            what = f"image_id {annotation.get('image_id')!r} is not in the list of images"
            self._report(number, what, "Add the image, or remove the annotation")
            return
        if annotation.get("iscrowd"):
            self.crowds += 1
            return
        box = _box(annotation)
        if isinstance(box, str):
            self._report(number, box, "Write bbox as x, y, width, height in pixels")
        label = self._label(number, annotation.get("category_id"))
        wrong = isinstance(box, str) or label is None
        self.found.append((number, image, label or "", _NO_BOX if isinstance(box, str) or wrong else box, wrong))
        score = _finite([annotation.get("score")])
        self.scores.append(np.nan if score is None else score[0])

    def _label(self, number: int, category: Any) -> str | None:
        """The name of a category; a file without categories has their numbers as names."""
        if category in self.categories:
            return self.categories[category]
        if not self.categories and category is not None:
            return str(category)
        self._report(number, f"category_id {category!r} is not in the list of categories", "Add it to categories")
        return None

    def _report(self, number: int, what: str, remedy: str) -> None:
        self.problems.append(Problem(str(self.file), number, what, remedy))

    def rows(self) -> Rows:
        if self.crowds:
            what = f"{self.crowds:,} crowd regions (iscrowd) are left out: they outline groups, not objects"
            remedy = "Remove iscrowd where a region is one object"
            self.problems.append(Problem(str(self.file), None, what, remedy, warning=True))
        annotated = {image for _, image, _, _, _ in self.found}
        negatives = [(0, image, "", _NO_BOX, False) for image in range(len(self.names)) if image not in annotated]
        found = [*self.found, *negatives]
        codes, labels = numbered(label for _, _, label, _, _ in found)
        return make_rows(
            tables=[str(self.file)],
            images=self.names,
            labels=labels,
            line=[row[0] for row in found],
            image=[row[1] for row in found],
            label=codes,
            box=[row[3] for row in found],
            broken=[row[4] for row in found],
            score=[*self.scores, *[np.nan] * len(negatives)],
            problems=self.problems,
        )


def _box(annotation: dict[str, Any]) -> list[float] | str:
    """The corners of an annotation, or why there are none."""
    box = annotation.get("bbox")
    if box is None or box == []:
        return _polygon_bounds(annotation.get("segmentation"))
    numbers = _finite(box)
    if numbers is None or len(numbers) != 4:
        return f"bbox {box!r} is not four finite numbers"
    x, y, width, height = numbers
    return [x, y, x + width, y + height]


def _polygon_bounds(polygons: Any) -> list[float] | str:
    if not polygons:
        return "there is neither bbox nor segmentation"
    if not isinstance(polygons, list):
        return "there is no bbox, and the segmentation is run-length encoded"
    flat = polygons if not isinstance(polygons[0], list) else [value for polygon in polygons for value in polygon]
    numbers = _finite(flat)
    if numbers is None or len(numbers) < 6 or len(numbers) % 2:
        return "there is no bbox, and the segmentation is no list of x, y pairs"
    return [min(numbers[::2]), min(numbers[1::2]), max(numbers[::2]), max(numbers[1::2])]


def _finite(values: Any) -> list[float] | None:
    """The values as numbers, or None when one is none or not finite."""
    if not isinstance(values, list):
        return None
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return None
    numbers = [float(value) for value in values]
    return numbers if np.isfinite(numbers).all() else None
