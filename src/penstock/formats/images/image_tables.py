"""A CSV or Parquet table of image paths and labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from penstock.errors import Problem
from penstock.formats.boxes.locating import FolderFinder, NotFound
from penstock.formats.boxes.rows import ImageName
from penstock.formats.images.image_lists import ImageList, number_labels
from penstock.formats.paths import PathLike
from penstock.formats.tables import Table, read_table, role_column, wrong_columns


def table_list(
    path: Path,
    *,
    images: PathLike | None,
    classes: tuple[str, ...] | None,
    group_column: str | None,
    split_column: str | None,
    allow_outside: bool,
) -> ImageList:
    """Images in the order of the table; each named image must exist, beside the table or under `images`."""
    table = read_table(path)
    column = table.find("image")
    if column is None:
        raise wrong_columns(table, ("path", "label"), "the table does not say where the images are")
    names = table.texts(column)
    finder = FolderFinder(Path(images) if images is not None else None, allow_outside)
    rows, files, problems = _located(table, column, names.tolist(), finder)
    repeated = _repeated(table, rows, files)
    listed = _labels(table, rows, classes)
    split, group = role_column(table, "split", split_column), role_column(table, "group", group_column)
    left_out = tuple(name for name in table.columns if name not in (column, table.find("label"), split, group))
    return ImageList(
        files=tuple(files),
        keys=tuple(names[row].replace("\\", "/") for row in rows),
        labels=listed.labels,
        classes=listed.classes,
        splits=_column(table, split, rows),
        groups=_column(table, group, rows),
        problems=(*table.problems, *problems, *repeated, *listed.problems, *left_out_columns(table.name, left_out)),
        left_out=left_out,
    )


def left_out_columns(table: str, names: tuple[str, ...]) -> list[Problem]:
    """Columns that are not used, as one warning."""
    if not names:
        return []
    remedy = "Images have a label, a split and a group; more fields can be had from Parquet files that hold the images"
    return [Problem(table, None, f"not used: {', '.join(map(repr, names))}", remedy, warning=True)]


def _located(
    table: Table, column: str, names: list[str], finder: FolderFinder
) -> tuple[list[int], list[str], list[Problem]]:
    """Rows that name an image, their files (also those that are missing), and the problems of all."""
    rows, files, problems = [], [], []
    for row, name in enumerate(names):
        line = int(table.lines[row])
        if not name:
            problems.append(Problem(table.name, line, f"{column} is empty", "Write the path of the image"))
            continue
        image = ImageName(name, table.folder)
        try:
            file = finder.find(image)
        except NotFound as error:
            problems.append(Problem(table.name, line, error.what, error.remedy, unreadable=error.missing))
            if not error.missing:
                continue
            file = finder.expected(image)
        rows.append(row)
        files.append(str(file))
    return rows, files, problems


def _repeated(table: Table, rows: list[int], files: list[str]) -> list[Problem]:
    first: dict[str, int] = {}
    problems = []
    for row, file in zip(rows, files, strict=True):
        earlier = first.setdefault(file, row)
        if earlier != row:
            what = f"the image is listed before, in line {table.lines[earlier]}"
            problems.append(Problem(table.name, int(table.lines[row]), what, "Remove one of them"))
    return problems


def _labels(table: Table, rows: list[int], classes: tuple[str, ...] | None) -> ImageList:
    """The label part of the list: none at all where the table has no such column."""
    column = table.find("label")
    if column is None:
        return ImageList((), ())
    texts = table.texts(column)[rows].tolist()
    lines = [int(line) for line in table.lines[rows]]
    numbers, names, problems = number_labels(texts, classes, [table.name] * len(rows), lines)
    problems += [
        Problem(table.name, lines[place], "the label is empty", "Write the class of the image")
        for place, text in enumerate(texts)
        if not text
    ]
    return ImageList((), (), numbers, names, problems=tuple(problems))


def _column(table: Table, column: str | None, rows: list[int]) -> tuple[str, ...] | None:
    if column is None or not len(table):
        return None
    return tuple(np.asarray(table.texts(column), object)[rows].tolist())
