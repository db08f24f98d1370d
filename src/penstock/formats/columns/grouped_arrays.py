"""Named arrays of one file as tables: splits by name, columns by length, the rest aside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from penstock.errors import DataError, Problem
from penstock.formats.columns.choosing import IMAGE_NAMES, LABEL_NAMES
from penstock.formats.columns.options import ColumnOptions
from penstock.formats.columns.shaped import with_shapes
from penstock.formats.columns.split_names import by_split
from penstock.formats.columns.tables import Column, Table
from penstock.wording import counted


@dataclass(frozen=True, eq=False)
class Named:
    """A stored array: how many rows it has, and what reads them."""

    length: int
    column: Column


def tables_of(
    name: str, file: str | None, arrays: Mapping[str, Named], options: ColumnOptions, group: str | None = None
) -> list[Table]:
    """One table, or one for each split that the names tell."""
    arrays = _shaped(arrays)
    splits = by_split(arrays)
    outside = splits.pop(None, {})
    named = options.given_columns.values()
    if not splits or any(column in arrays for column in named):
        splits, outside = {None: {each: each for each in arrays}}, {}
    tables = []
    for split, columns in splits.items():
        own = {column: arrays[stored] for column, stored in columns.items()}
        title = f"{name}/{split}" if split and name else split or name
        table = _table(title, file, own, options, split, group)
        aside = {**table.aside, **{each: arrays[each].column for each in outside}}
        lengths = {**table.lengths, **{each: arrays[each].length for each in outside}}
        tables.append(replace(table, aside=aside, lengths=lengths))
    return tables


def _shaped(arrays: Mapping[str, Named]) -> dict[str, Named]:
    found = with_shapes({name: (one.length, one.column) for name, one in arrays.items()})
    return {name: Named(length, column) for name, (length, column) in found.items()}


def _table(
    name: str,
    file: str | None,
    arrays: Mapping[str, Named],
    options: ColumnOptions,
    split: str | None,
    group: str | None,
) -> Table:
    length = _length(name, file, arrays, options)
    columns = {each: one.column for each, one in arrays.items() if one.length == length}
    aside = {each: one for each, one in arrays.items() if one.length != length}
    return Table(
        name,
        file,
        length,
        columns,
        split,
        group,
        aside={each: one.column for each, one in aside.items()},
        lengths={each: one.length for each, one in aside.items()},
    )


def _length(name: str, file: str | None, arrays: Mapping[str, Named], options: ColumnOptions) -> int:
    """How many samples there are: as many as images. Columns with a role must have as many rows."""
    given = options.given_columns
    roles = [column for column in given.values() if column in arrays]
    roles += [column for column in (_first(arrays, IMAGE_NAMES), _first(arrays, LABEL_NAMES)) if column is not None]
    if not roles:
        return max((one.length for one in arrays.values()), default=0)
    wrong = [column for column in roles[1:] if arrays[column].length != arrays[roles[0]].length]
    if wrong:
        first, other = arrays[roles[0]].length, arrays[wrong[0]].length
        what = f"{roles[0]!r} has {counted(first, 'row')} and {wrong[0]!r} has {other:,}"
        raise DataError([Problem(file or name or "arrays", None, what, "Each sample needs one row in both")])
    return arrays[roles[0]].length


def _first(arrays: Mapping[str, Named], names: tuple[str, ...]) -> str | None:
    small = {name.lower(): name for name in reversed(list(arrays))}
    return next((small[name] for name in names if name in small), None)
