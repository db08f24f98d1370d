"""Several files of one source have the same columns; where shapes differ, that dimension is free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.errors import DataError, Problem
from penstock.samples import Field
from penstock.sources.columns.choosing import Choice, Taken
from penstock.sources.columns.tables import Holds, Table


def agreed(tables: Sequence[Table], choice: Choice) -> Choice:
    """The choice that was made for the first table, fit for all of them; all that does not fit is said at once."""
    problems = [problem for table in tables[1:] for problem in _differences(table, choice)]
    if problems:
        raise DataError(problems)
    return replace(choice, taken=tuple(_common(taken, tables) for taken in choice.taken))


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
    return problems


def _alike(one: Holds, other: Holds) -> bool:
    return (one.what, one.dtype, len(one.shape)) == (other.what, other.dtype, len(other.shape)) and (
        one.classes == other.classes
    )


def _common(taken: Taken, tables: Sequence[Table]) -> Taken:
    shapes = [table.columns[taken.column].holds.shape for table in tables]
    shape = tuple(side[0] if len(set(side)) == 1 else None for side in zip(*shapes, strict=True))
    if shape == taken.holds.shape:
        return taken
    field = taken.field if taken.field.shape is None else Field(taken.field.name, "array", taken.field.dtype, shape)
    return replace(taken, field=field, holds=replace(taken.holds, shape=shape))
