"""Several files of one source have the same columns; where shapes differ, that dimension is free."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from penstock.errors import DataError, Problem
from penstock.formats.columns.choosing import Choice, Taken
from penstock.formats.columns.tables import Holds, Table
from penstock.samples import Field
from penstock.wording import counted

# What a missing value is read as, where the field cannot say that it is missing.
READ_AS = {"text": "read as an empty text", "boxes": "read as no boxes", "labels": "read as no labels"}


def agreed(tables: Sequence[Table], choice: Choice, given: Collection[str]) -> Choice:
    """The choice that was made for the first table, fit for all of them; all that does not fit is said at once.

    `given` are the columns that the user named: those are not left out in silence.
    """
    problems = [problem for table in tables[1:] for problem in _differences(table, choice)]
    if problems:
        raise DataError(problems)
    return _without_gaps(tables, replace(choice, taken=tuple(_common(taken, tables) for taken in choice.taken)), given)


def _without_gaps(tables: Sequence[Table], choice: Choice, given: Collection[str]) -> Choice:
    """Leave out columns of whole numbers or arrays that lack values: nothing stands for "none" in them."""
    gaps = {taken.column: _gaps(tables, taken) for taken in choice.taken}
    wanted = [column for column, count in gaps.items() if count and column in given]
    if wanted:
        what = f"column {wanted[0]!r} has rows without a value: {gaps[wanted[0]]:,}"
        raise DataError([Problem(tables[0].where, None, what, "Fill them, or leave the column out of fields")])
    reasons = {column: f"rows without a value: {count:,}" for column, count in gaps.items() if count}
    kept = tuple(taken for taken in choice.taken if taken.column not in reasons)
    if not kept:
        there = "; ".join(f"{name}: {reason}" for name, reason in {**choice.left_out, **reasons}.items())
        what, remedy = f"no column can be a field ({there})", "Fill the values that are missing"
        raise DataError([Problem(tables[0].where, None, what, remedy)])
    return replace(choice, taken=kept, left_out={**choice.left_out, **reasons})


def _gaps(tables: Sequence[Table], taken: Taken) -> int:
    """Rows without a value, where that cannot be said; only some formats know such rows, and tell by `gaps`."""
    if taken.how not in ("number", "array") or (taken.how == "number" and taken.field.dtype.startswith("float")):
        return 0
    return sum(_gaps_of(table, taken.column) for table in tables)


def _gaps_of(table: Table, name: str) -> int:
    column: Any = table.columns[name]
    return int(column.gaps()) if hasattr(column, "gaps") else 0


def null_warnings(tables: Sequence[Table], choice: Choice) -> list[Problem]:
    """A warning for each column whose missing values are read as something that could also be stored."""
    read_as = {taken.column: READ_AS[taken.how] for taken in choice.taken if taken.how in READ_AS}
    if choice.key is not None:
        read_as[choice.key] = "the number of the row is the key"
    warnings = []
    for column, reading in read_as.items():
        gaps = {table.where: _gaps_of(table, column) for table in tables}
        first = next((file for file, count in gaps.items() if count), None)
        if first is not None:
            what = f"column {column!r} has {counted(sum(gaps.values()), 'row')} without a value (null): {reading}"
            warnings.append(Problem(first, None, what, "Fill them if that is wrong", warning=True))
    return warnings


def _differences(table: Table, choice: Choice) -> list[Problem]:
    problems = []
    remedy = "Open files of one kind together, the others apart"
    for name in (choice.key, choice.group, choice.split):
        if name is not None and name not in table.columns:
            problems.append(Problem(table.where, None, f"it has no column {name!r}", remedy))
    for taken in choice.taken:
        column = table.columns.get(taken.column)
        if column is None:
            there = ", ".join(table.columns)
            what = f"it has no column {taken.column!r} as the first file has; there are {there or 'none'}"
            problems.append(Problem(table.where, None, what, remedy))
        elif not _alike(taken.holds, column.holds):
            what = f"column {taken.column!r} holds {column.holds.words}, and {taken.holds.words} in the first file"
            problems.append(Problem(table.where, None, what, remedy))
        elif taken.holds.classes != column.holds.classes:
            here, first = (", ".join(names) or "none" for names in (column.holds.classes, taken.holds.classes))
            what = f"column {taken.column!r} has the classes {here}, and {first} in the first file"
            problems.append(Problem(table.where, None, what, f"{remedy} and join them with ps.concat"))
    return problems


def _alike(one: Holds, other: Holds) -> bool:
    return (one.what, one.dtype, len(one.shape)) == (other.what, other.dtype, len(other.shape))


def _common(taken: Taken, tables: Sequence[Table]) -> Taken:
    shapes = [table.columns[taken.column].holds.shape for table in tables]
    shape = tuple(side[0] if len(set(side)) == 1 else None for side in zip(*shapes, strict=True))
    if shape == taken.holds.shape:
        return taken
    field = taken.field if taken.field.shape is None else Field(taken.field.name, "array", taken.field.dtype, shape)
    return replace(taken, field=field, holds=replace(taken.holds, shape=shape))
