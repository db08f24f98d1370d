"""Values of a label column as numbers of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, Problem, nearest
from penstock.formats.columns.choosing import Taken, is_class_list
from penstock.formats.columns.tables import Table
from penstock.wording import counted

# Numbers beyond this are no classes but something else, such as identifiers.
MOST_UNNAMED_CLASSES = 100_000


def class_numbers(
    tables: Sequence[Table], column: str, names: tuple[str, ...] | None
) -> tuple[list[NDArray[np.int64]], tuple[str, ...]]:
    """The class number of every row of each table, and the names; all problems at once.

    Whole numbers are the numbers of classes, and −1 is none; without names they are called by their numbers. Texts are
    the names themselves, sorted unless names are given; an empty text is none.
    """
    values = [np.asarray(table.columns[column].whole()) for table in tables]
    if any(one.dtype.kind == "O" for one in values):
        return _from_texts(tables, values, column, names)
    numbers = [one.reshape(len(one)).astype(np.int64) for one in values]
    classes = _named_by_number(tables, numbers, column) if names is None else names
    _raise_unless_legal(tables, numbers, column, len(classes))
    return numbers, classes


def _named_by_number(tables: Sequence[Table], numbers: Sequence[NDArray[np.int64]], column: str) -> tuple[str, ...]:
    most = max((int(one.max(initial=-1)) for one in numbers), default=-1)
    if most >= MOST_UNNAMED_CLASSES:
        what = f"column {column!r} holds {most:,}, which is hardly the number of a class"
        remedy = "Pass classes, or take it as a number: label=… another column, fields={'number': …}"
        raise DataError([Problem(tables[0].where, None, what, remedy)])
    return tuple(str(number) for number in range(most + 1))


def _raise_unless_legal(tables: Sequence[Table], numbers: Sequence[NDArray[np.int64]], column: str, count: int) -> None:
    problems = []
    for table, one in zip(tables, numbers, strict=True):
        for row in np.flatnonzero((one < -1) | (one >= count)).tolist():
            what = f"{column} is {one[row]}, and there are {counted(count, 'class')}"
            problems.append(
                Problem(
                    table.where,
                    row,
                    what,
                    "Classes count from 0, and −1 is none; mend it, or pass classes",
                )
            )
    if problems:
        raise DataError(problems)


def _from_texts(
    tables: Sequence[Table], values: Sequence[NDArray[Any]], column: str, names: tuple[str, ...] | None
) -> tuple[list[NDArray[np.int64]], tuple[str, ...]]:
    found = sorted({str(value) for one in values for value in one if value not in (None, "")})
    classes = tuple(found) if names is None else names
    numbers = {name: number for number, name in enumerate(classes)} | {"": -1}
    unknown = [name for name in found if name not in numbers]
    if unknown:
        _raise_unknown(tables, values, column, classes, set(unknown))
    return [
        np.array([numbers["" if value is None else str(value)] for value in one], np.int64) for one in values
    ], classes


def _raise_unknown(
    tables: Sequence[Table], values: Sequence[NDArray[Any]], column: str, classes: tuple[str, ...], unknown: set[str]
) -> None:
    problems = []
    for table, one in zip(tables, values, strict=True):
        for row, value in enumerate(one):
            if str(value) in unknown:
                what = f"{column} is {value!r}, which is not one of the {counted(len(classes), 'class')}"
                remedy = nearest(str(value), classes).strip() or "Add it to classes, or mend the row"
                problems.append(Problem(table.where, row, what, remedy))
    raise DataError(problems)


def listed_classes(tables: Sequence[Table]) -> tuple[str, ...] | None:
    """The names that the files list beside their columns, such as an array `class_names`; files must agree."""
    listed = [(table, names) for table in tables if (names := _listed(table)) is not None]
    if not listed:
        return None
    first, classes = listed[0]
    problems = [
        Problem(
            table.where,
            None,
            f"it lists the classes {', '.join(names)}, and {first.where} lists {', '.join(classes)}",
            "Pass the classes that hold for all files, or open the files one by one and join them with ps.concat",
        )
        for table, names in listed
        if names != classes
    ]
    if problems:
        raise DataError(problems)
    return classes


def _listed(table: Table) -> tuple[str, ...] | None:
    for name, column in table.aside.items():
        if is_class_list(name, column.holds):
            return tuple(str(value) for value in column.whole())
    return None


def vector_classes(tables: Sequence[Table], taken: Taken | None, names: tuple[str, ...] | None) -> tuple[str, ...]:
    """The names behind labels that are vectors: given, said by the file, or numbers."""
    if taken is None:
        return names or ()
    if names or taken.holds.classes:
        return names or taken.holds.classes
    if taken.field.name != "box_label":
        return tuple(str(number) for number in range(taken.holds.shape[0] or 0))
    numbers = [np.asarray(table.columns[taken.column].flat(), np.int64) for table in tables]
    return _named_by_number(tables, numbers, taken.column)
