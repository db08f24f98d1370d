"""Tables with one row for each frame and one column for each behaviour, as DeepEthogram writes them.

    ,background,groom,rear
    0,1,0,0
    1,0,1,0

    video,frame,time_s,background,groom,rear,background_probability,groom_probability,rear_probability
    mouse1.mp4,0,0,1,0,0,0.92,0.03,0.11

The index column may be missing; video, time and probabilities, as predictions have them, are no labels. Values are
1, 0 and −1 (not labelled). `background` may be called `none`, and is derived where it is missing: 0 beside another
behaviour, 1 where all are 0, else −1.
"""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

import numpy as np

from penstock.errors import DataError, Problem
from penstock.formats.tables import Numbers, Table, plain
from penstock.formats.videos.frame_labels import BACKGROUND, Labels, RowLabels, with_background
from penstock.formats.videos.label_events import VIDEO_NAMES
from penstock.formats.videos.label_options import LabelOptions
from penstock.wording import counted

DEFAULT_OPTIONS = LabelOptions()
# Columns before the behaviours that say which frame a row is about.
_TIME_NAMES = frozenset({"time", "times", "timeseconds", "seconds"})
_PROBABILITY = "_probability"
_INDEX_NAMES = frozenset({"", "index", "unnamed0", "frame", "frames", "framenumber", "frameindex"})


# Columns in a message, and wrong values of a column that are told one by one.
_SHOWN, _FEW = 8, 8


class LabelRows(NamedTuple):
    """A table as read: its behaviours (background among them), the values, and what was wrong."""

    table: Table
    behaviours: tuple[str, ...]
    values: Labels
    problems: list[Problem]

    def arranged(self, classes: tuple[str, ...]) -> tuple[RowLabels, list[Problem]]:
        """The columns in the order of the classes; a missing or unknown one is a problem."""
        missing = [name for name in classes if name not in self.behaviours]
        unknown = [name for name in self.behaviours if name not in classes]
        problems = [_column_problem(self.table, name, classes, "has no column for") for name in missing]
        problems += [_column_problem(self.table, name, classes, "has a column for") for name in unknown]
        values = np.full((len(self.values), len(classes)), -1, np.int8)
        for place, name in enumerate(classes):
            if name in self.behaviours:
                values[:, place] = self.values[:, self.behaviours.index(name)]
        return RowLabels(self.table.name, values, self.table.lines), problems

    def differences(self, other: LabelRows) -> list[Problem]:
        """Where two tables have different behaviours, what each of them has: nobody knows which of them is right."""
        if set(self.behaviours) == set(other.behaviours):
            return []
        what = (
            f"has the behaviours {', '.join(self.behaviours)}, and {other.table.name} has {', '.join(other.behaviours)}"
        )
        remedy = "Every video needs the same behaviours; add or remove columns in one of the two, or give classes"
        return [Problem(self.table.name, None, what, remedy)]


def _column_problem(table: Table, name: str, classes: tuple[str, ...], what: str) -> Problem:
    remedy = f"Every video needs the same behaviours, here {', '.join(classes)}; add or remove the column"
    return Problem(table.name, None, f"{what} the behaviour {name!r}", remedy)


def read_label_rows(table: Table, options: LabelOptions = DEFAULT_OPTIONS) -> LabelRows:
    """Check and read a table of one row per frame."""
    problems = list(table.problems)
    names, found = _behaviour_columns(table)
    problems += found
    if options.selects and options.classes is not None:
        names, found = _selected(table, names, options.classes)
        problems += found
    if not names or all(_is_number(name) for name in names):
        what = "the first line names no behaviour" if names else "there is no column of labels"
        remedy = "Write a header with one name for each behaviour, such as background,groom,rear"
        raise DataError([Problem(table.name, 1, what, remedy)])
    columns = [table.numbers(name) for name in names]
    foreign = _foreign_columns(names, columns)
    if foreign:
        raise DataError([_no_labels(table, foreign, len(names))])
    for name, column in zip(names, columns, strict=True):
        problems += _value_problems(table, name, column, empty_is_wrong=options.empty_labels == "error")
    values = np.stack([_as_labels(column) for column in columns], axis=1)
    behaviours = tuple(_behaviour(name) for name in names)
    return _completed(LabelRows(table, behaviours, values, problems))


def _behaviour_columns(table: Table) -> tuple[list[str], list[Problem]]:
    """The columns of labels, and what is wrong with those before them."""
    names = list(table.columns)
    problems: list[Problem] = []
    if names and plain(names[0]) in VIDEO_NAMES:
        problems += _video_problems(table, names.pop(0))
    if names and plain(names[0]) in _INDEX_NAMES:
        problems += _index_problems(table, names.pop(0))
        if names and plain(names[0]) in _TIME_NAMES:
            names.pop(0)
    likely = {name for name in names if name.endswith(_PROBABILITY) and _is_of(name.removesuffix(_PROBABILITY), names)}
    return [name for name in names if name not in likely], problems


def _selected(table: Table, names: list[str], classes: tuple[str, ...]) -> tuple[list[str], list[Problem]]:
    """The columns that are classes; those that are left out are named, and background is where none of the rest is."""
    kept = [name for name in names if name in classes and _behaviour(name) != BACKGROUND]
    left = [name for name in names if name not in classes and _behaviour(name) != BACKGROUND]
    if not kept or not left:
        return names, []
    what = f"{counted(len(left), 'column', 'is')} none of the classes and are left out: {_listed(left)}"
    return kept, [Problem(table.name, None, what, "Add those that you mean to classes", warning=True)]


def _behaviour(name: str) -> str:
    return BACKGROUND if name.lower() in ("none", BACKGROUND) else name


def _foreign_columns(names: list[str], columns: list[Numbers]) -> list[str]:
    """Columns that hold something else: half of what stands there is neither 1, 0 nor −1.

    A few wrong values of a column are told one by one, unless most columns are so: then it is a table of another kind.
    """
    wrong = [int((~np.isin(column.values, (-1, 0, 1)) & ~column.missing).sum()) for column in columns]
    there = [int((~column.missing).sum()) for column in columns]
    mostly = [bad * 2 > known for bad, known in zip(wrong, there, strict=True)]
    is_other_kind = sum(mostly) * 2 > len(names) and sum(wrong) > _FEW
    return [
        name for name, bad, most in zip(names, wrong, mostly, strict=True) if most and (bad > _FEW or is_other_kind)
    ]


def _no_labels(table: Table, foreign: list[str], count: int) -> Problem:
    what = f"{len(foreign):,} of {counted(count, 'column', 'holds')} other values than 1, 0 and −1: {_listed(foreign)}"
    if len(foreign) == count:
        return Problem(
            table.name, None, f"is not a table of labels: {what}", "Pass a table with a column for each behaviour"
        )
    remedy = "Name the columns of behaviours as classes, such as classes='attack,groom', or remove the others"
    return Problem(table.name, None, what, remedy)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")


def _is_of(behaviour: str, names: list[str]) -> bool:
    """Whether a probability belongs to a behaviour of the table; background is one, also where it is derived."""
    return behaviour in names or behaviour == BACKGROUND


def _video_problems(table: Table, name: str) -> list[Problem]:
    """A row for each frame means one video; of two, the frames of the second would go on where the first ends."""
    videos = table.texts(name)
    other = np.flatnonzero(videos != videos[0]) if len(videos) else videos
    if not len(other):
        return []
    what = f"the rows above are of {videos[0]!r}, and from here on of {videos[other[0]]!r}"
    return [Problem(table.name, int(table.lines[other[0]]), what, "Write one table for each video")]


def _completed(rows: LabelRows) -> LabelRows:
    """With a background in front where the table has none; a background beside another behaviour is a problem."""
    if BACKGROUND not in rows.behaviours:
        background = with_background(rows.values)
        values = np.concatenate([background[:, None], rows.values], axis=1)
        return rows._replace(behaviours=(BACKGROUND, *rows.behaviours), values=values)
    place = rows.behaviours.index(BACKGROUND)
    others = np.delete(rows.values, place, axis=1)
    both = np.flatnonzero((rows.values[:, place] == 1) & (others == 1).any(axis=1))
    if len(both):
        what = f"background is 1 beside another behaviour, in {counted(len(both), 'row')}; this is the first"
        line = int(rows.table.lines[both[0]])
        rows.problems.append(Problem(rows.table.name, line, what, "Set one of the two to 0"))
    return rows


def _is_number(name: str) -> bool:
    """Whether a column is called by a number, such as 0; the second of that name is read as 0 (2)."""
    text = re.sub(r" \(\d+\)$", "", name)
    return text.lstrip("+-").replace(".", "", 1).isdecimal()


def _as_labels(column: Numbers) -> Labels:
    good = np.isin(column.values, (-1, 0, 1))
    return np.where(good, column.values, -1).astype(np.int8)


def _value_problems(table: Table, name: str, column: Numbers, *, empty_is_wrong: bool) -> list[Problem]:
    """Values that are no labels; a run of rows with the same one is one problem."""
    wrong = np.flatnonzero(~np.isin(column.values, (-1, 0, 1)) & (empty_is_wrong | ~column.missing))
    if not len(wrong):
        return []
    texts = [table.text_at(name, int(row)) for row in wrong]
    changes = [at for at in range(1, len(wrong)) if wrong[at] != wrong[at - 1] + 1 or texts[at] != texts[at - 1]]
    remedy = "Use 1 for present, 0 for absent, -1 for not labelled"
    problems = []
    for start, stop in itertools.pairwise([0, *changes, len(wrong)]):
        until = f", to line {int(table.lines[wrong[stop - 1]])} ({counted(stop - start, 'row')})"
        last = until if stop - start > 1 else ""
        also = "" if texts[start] else "; empty_labels='unlabelled' reads empty cells as -1"
        what = f"{name} is {texts[start]!r}{last}"
        problems.append(Problem(table.name, int(table.lines[wrong[start]]), what, remedy + also))
    return problems


def _index_problems(table: Table, name: str) -> list[Problem]:
    """Frame numbers must go up by one: a row too many or too few would shift every label after it."""
    numbers = table.numbers(name).values
    if not len(numbers):
        return []
    expected = np.arange(len(numbers)) + (1 if numbers[0] == 1 else 0)
    wrong = np.flatnonzero(numbers != expected)
    if not len(wrong):
        return []
    row = int(wrong[0])
    what = f"the frame number is {table.text_at(name, row)!r}, expected {expected[row]}"
    return [Problem(table.name, int(table.lines[row]), what, "Number the rows without gaps, from 0")]
