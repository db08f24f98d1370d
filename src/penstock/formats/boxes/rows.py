"""Annotations as they were read: one row each, before anything is known about the images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, Problem


class ImageName(NamedTuple):
    """How an annotation names its image: as written, by a stem with any ending, or as a known file."""

    name: str
    folder: Path
    stem: str = ""
    file: Path | None = None


@dataclass(frozen=True)
class Rows:
    """Columns of equal length, one row per annotation; names are kept once and pointed to by number.

    table, line   which annotation file, and the line or record in it
    image         number into `images`                 label    number into `labels`, −1 when it is empty
    box           x1 y1 x2 y2; NaN for a row without a box: it only lists its image (a negative sample)
    broken        the row has a problem that is already reported, and its box is NaN
    fractions     the box is in fractions of width and height (YOLO)
    listed_classes  names in an order that the format itself fixes (YOLO's classes.txt); labels not in it come after
    point         the box was made around a point: it ends at the border, and the point must be inside
    clip          the box may reach over the border without a word, as a map feature does
    score         how sure a prediction is; NaN where nothing says so
    """

    tables: tuple[str, ...]
    images: tuple[ImageName, ...]
    labels: tuple[str, ...]
    table: NDArray[np.int64]
    line: NDArray[np.int64]
    image: NDArray[np.int64]
    label: NDArray[np.int64]
    box: NDArray[np.float64]
    broken: NDArray[np.bool_]
    fractions: NDArray[np.bool_]
    point: NDArray[np.bool_]
    clip: NDArray[np.bool_]
    score: NDArray[np.float64]
    problems: tuple[Problem, ...] = ()
    listed_classes: tuple[str, ...] = ()
    splits: dict[int, str] = field(default_factory=dict)
    groups: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.line)

    def where(self, row: int) -> tuple[str, int]:
        """The file and line of a row, for a Problem."""
        return self.tables[self.table[row]], int(self.line[row])


def make_rows(
    *,
    tables: Sequence[str],
    images: Sequence[ImageName],
    labels: Sequence[str],
    line: Any,
    image: Any,
    label: Any,
    box: Any,
    table: Any = 0,
    broken: Any = False,
    fractions: Any = False,
    point: Any = False,
    clip: Any = False,
    score: Any = np.nan,
    problems: Iterable[Problem] = (),
    listed_classes: tuple[str, ...] = (),
    splits: dict[int, str] | None = None,
    groups: dict[int, str] | None = None,
) -> Rows:
    """Rows from anything that numpy takes; one value stands for all rows."""
    count = len(line)

    def column(values: Any, dtype: type) -> NDArray[Any]:
        return np.broadcast_to(np.asarray(values, dtype), (count,))

    return Rows(
        tables=tuple(tables),
        images=tuple(images),
        labels=tuple(labels),
        table=column(table, np.int64),
        line=column(line, np.int64),
        image=column(image, np.int64),
        label=column(label, np.int64),
        box=np.asarray(box, np.float64).reshape(count, 4),
        broken=column(broken, np.bool_),
        fractions=column(fractions, np.bool_),
        point=column(point, np.bool_),
        clip=column(clip, np.bool_),
        score=column(score, np.float64),
        problems=tuple(problems),
        listed_classes=listed_classes,
        splits=splits or {},
        groups=groups or {},
    )


def in_split(rows: Rows, split: str) -> Rows:
    """Rows whose images all belong to one split; if they name splits of their own, that is an error."""
    if rows.splits:
        what = f"it names splits ({', '.join(sorted(set(rows.splits.values())))}), and so does val"
        raise DataError([Problem(rows.tables[0], None, what, "Leave out val, or the column split")])
    return replace(rows, splits=dict.fromkeys(range(len(rows.images)), split))


def join_rows(pieces: Sequence[Rows]) -> Rows:
    """Several readings one after another, as one."""
    if len(pieces) == 1:
        return pieces[0]
    tables = np.cumsum([0] + [len(piece.tables) for piece in pieces])
    images = np.cumsum([0] + [len(piece.images) for piece in pieces])
    labels = np.cumsum([0] + [len(piece.labels) for piece in pieces])

    def stacked(name: str, shifts: NDArray[np.int64] | None = None) -> NDArray[Any]:
        columns = [getattr(piece, name) for piece in pieces]
        if shifts is not None:
            columns = [np.where(column < 0, -1, column + shift) for column, shift in zip(columns, shifts, strict=False)]
        return np.concatenate(columns)

    def shifted(name: str) -> dict[int, str]:
        pairs = zip(pieces, images, strict=False)
        return {int(number + shift): text for piece, shift in pairs for number, text in getattr(piece, name).items()}

    return make_rows(
        tables=[name for piece in pieces for name in piece.tables],
        images=[name for piece in pieces for name in piece.images],
        labels=[name for piece in pieces for name in piece.labels],
        table=stacked("table", tables),
        line=stacked("line"),
        image=stacked("image", images),
        label=stacked("label", labels),
        box=stacked("box"),
        broken=stacked("broken"),
        fractions=stacked("fractions"),
        point=stacked("point"),
        clip=stacked("clip"),
        score=stacked("score"),
        problems=[problem for piece in pieces for problem in piece.problems],
        listed_classes=tuple(dict.fromkeys(name for piece in pieces for name in piece.listed_classes)),
        splits=shifted("splits"),
        groups=shifted("groups"),
    )


def numbered(texts: Iterable[Any]) -> tuple[NDArray[np.int64], tuple[Any, ...]]:
    """Distinct values in order of appearance, and for each entry the number of its value."""
    numbers: dict[Any, int] = {}
    codes = [numbers.setdefault(text, len(numbers)) for text in texts]
    return np.asarray(codes, np.int64), tuple(numbers)
