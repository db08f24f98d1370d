"""From annotations of any format to AnnotatedImages: read rows, find images, read their sizes, check, sort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import Problem
from penstock.formats.boxes.annotation_files import read_rows, refuse_empty_file
from penstock.formats.boxes.annotations import AnnotatedImages
from penstock.formats.boxes.box_checks import CheckedBoxes, check_boxes
from penstock.formats.boxes.locating import NotFound, keys_of, make_finder, read_sizes
from penstock.formats.boxes.point_buffers import scale_points
from penstock.formats.boxes.rows import Rows, in_split, join_rows
from penstock.formats.reading import ReadingOptions
from penstock.wording import counted


@dataclass
class _Found:
    """The images of some rows; `number` turns a number into Rows.images into one of these, or −1."""

    files: list[Path]
    names: list[str]
    number: NDArray[np.int64]
    there: NDArray[np.bool_]
    problems: list[Problem]


def annotated_images(annotations: Any, options: ReadingOptions) -> AnnotatedImages:
    """Read, find, check and sort; see `read_annotations`."""
    refuse_empty_file(annotations)
    rows = read_rows(annotations, options)
    if options.val is not None:
        rows = join_rows([in_split(rows, "train"), in_split(read_rows(options.val, options), "val")])
    found = _find_images(rows, options)
    sizes, reasons = read_sizes(
        found.files,
        found.there,
        any_raster=options.files is not None,
        allow_drivers=options.allow_drivers,
        decoded=options.files is None,
    )
    image = found.number[rows.image] if len(rows.images) else np.full(len(rows), -1)
    image = np.where(rows.image < 0, -1, image)
    rows, unplaced = scale_points(rows, image, found.files, options)
    checked = check_boxes(rows, image, found.names, sizes, options)
    problems = [
        *rows.problems,
        *found.problems,
        *unplaced,
        *checked.problems,
        *(_in_both_splits(rows, found) if options.val is not None else ()),
        *_lacking(rows, image, len(found.files)),
    ]
    problems.sort(key=lambda problem: (problem.file, problem.row or 0))
    sorted_images = _sorted_by_image(rows, image, found, sizes, checked, tuple(problems))
    return replace(sorted_images, unreadable=reasons)


def _find_images(rows: Rows, options: ReadingOptions) -> _Found:
    """Every image once, in the order of the given files or of first appearance."""
    given: Sequence[Path] = options.files or ()
    numbers: dict[Path, int] = {file: number for number, file in enumerate(given)}
    names: dict[int, str] = dict(enumerate(keys_of(given)))
    missing: set[int] = set()
    finder = make_finder(options)
    problems: list[Problem] = []
    first_rows = _first_rows(rows)
    targets = np.full(len(rows.images), -1, np.int64)
    for place, image in enumerate(rows.images):
        try:
            file = finder.find(image)
        except NotFound as error:
            if options.files is not None and options.ignore_others:
                continue
            where = _where(rows, first_rows[place])
            problems.append(Problem(*where, error.what, error.remedy, unreadable=error.missing))
            if options.files is not None:
                continue
            file = finder.expected(image)
            missing.add(numbers.setdefault(file, len(numbers)))
        targets[place] = numbers.setdefault(file, len(numbers))
        names.setdefault(int(targets[place]), image.name.replace("\\", "/") or file.name)
    if options.files and rows.images and (targets < 0).all() and not problems:
        problems.append(_none_matching(rows, options.files))
    there = np.ones(len(numbers), bool)
    there[list(missing)] = False
    files = list(numbers)
    return _Found(
        files, _unique_names(files, [names[number] for number in range(len(files))]), targets, there, problems
    )


def _none_matching(rows: Rows, files: Sequence[Path]) -> Problem:
    """Rows about other images may be ignored, but not all of them: then the names do not agree."""
    there = sorted({image.name or image.stem for image in rows.images})
    shown = ", ".join(repr(name) for name in there[:3]) + (" …" if len(there) > 3 else "")
    what = f"no row is about any of the {counted(len(files), 'image')} that are read: the names there are {shown}"
    remedy = f"The images are called {files[0].name!r} and the like: name them alike in both"
    return Problem(_common_place(rows.tables), None, what, remedy)


def _in_both_splits(rows: Rows, found: _Found) -> list[Problem]:
    """Images that are named for training and for validation."""
    train = {int(found.number[place]) for place, split in rows.splits.items() if split == "train"}
    both = {place: int(found.number[place]) for place, split in rows.splits.items() if split == "val"}
    first_rows = _first_rows(rows)
    return [
        Problem(
            *_where(rows, first_rows[place]),
            f"the image {found.names[number]} is for validation here, and for training elsewhere",
            "Leave it out of one of them: scores on images that were trained on say nothing",
        )
        for place, number in both.items()
        if number >= 0 and number in train
    ]


def _first_rows(rows: Rows) -> NDArray[np.int64]:
    """For each image the first row that names it, −1 when none does."""
    first = np.full(len(rows.images), -1, np.int64)
    backwards = np.arange(len(rows))[::-1]
    named = rows.image[backwards] >= 0
    first[rows.image[backwards][named]] = backwards[named]
    return first


def _where(rows: Rows, row: int) -> tuple[str, int | None]:
    if row < 0:
        return rows.tables[0], None
    file, line = rows.where(row)
    return file, line or None


def _unique_names(files: list[Path], names: list[str]) -> list[str]:
    """Keys must differ: the same name below several tables is written from their common folder."""
    return names if len(set(names)) == len(names) else keys_of(files)


def _lacking(rows: Rows, image: NDArray[np.int64], count: int) -> list[Problem]:
    """No image at all; or a warning when more than half have no row with a box, whether right or wrong."""
    tried = image[(~np.isnan(rows.box[:, 0]) | rows.broken) & (image >= 0)]
    negatives = count - len(np.unique(tried))
    if count == 0:
        return [Problem(_common_place(rows.tables), None, "the annotations name no image", "Add rows")]
    if negatives * 2 <= count:
        return []
    what = f"{negatives:,} of {counted(count, 'image', 'has')} no boxes"
    remedy = "Right if they show nothing; otherwise check that the names of images and annotations agree"
    return [Problem(_common_place(rows.tables), None, what, remedy, warning=True)]


def _common_place(tables: Sequence[str]) -> str:
    """The one annotation file, or the folder of many."""
    return tables[0] if len(tables) == 1 else str(Path(tables[0]).parent)


def _sorted_by_image(
    rows: Rows,
    image: NDArray[np.int64],
    found: _Found,
    sizes: NDArray[np.int64],
    checked: CheckedBoxes,
    problems: tuple[Problem, ...],
) -> AnnotatedImages:
    chosen = np.flatnonzero(checked.usable)
    order = chosen[np.argsort(image[chosen], kind="stable")]
    counts = np.bincount(image[order], minlength=len(found.files))
    return AnnotatedImages(
        files=tuple(found.files),
        names=tuple(found.names),
        sizes=sizes,
        starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        boxes=checked.box[order].astype(np.float32),
        labels=checked.label[order],
        classes=checked.classes,
        problems=problems,
        rows=rows.line[order],
        tables=rows.tables,
        table_numbers=rows.table[order],
        splits=_by_image(rows.splits, found),
        groups=_by_image(rows.groups, found),
    )


def _by_image(texts: dict[int, str], found: _Found) -> tuple[str, ...] | None:
    """What the annotations say of each image, empty where they say nothing; None when they never do."""
    if not texts:
        return None
    values = [""] * len(found.files)
    for place, text in texts.items():
        if found.number[place] >= 0:
            values[found.number[place]] = text
    return tuple(values)
