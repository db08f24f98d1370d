"""What a reader of annotations is told by the user, checked once at the door."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

from penstock.errors import DataError, OptionError, Problem
from penstock.formats.paths import PathLike
from penstock.storage.plain_files import read_text

# The class of a table or layer that names none, unless `classes` holds exactly one name.
ONLY_CLASS = "object"


@dataclass(frozen=True)
class ReadingOptions:
    """`images` is a folder to look in; `files` are the images that exist.

    `group_column` and `split_column` are columns of tables.
    `allow_drivers` are drivers of GDAL that may open rasters beside the usual ones.
    `ignore_others` leaves out rows of images that are not among `files`, instead of reporting them.
    `val` are further annotations, whose images are the split val; those of the others are the split train.
    """

    images: Path | None = None
    files: tuple[Path, ...] | None = None
    classes: tuple[str, ...] | None = None
    point_buffer: float | str | None = None
    clip_boxes: bool = False
    allow_outside: bool = False
    group_column: str | None = None
    split_column: str | None = None
    ignore_others: bool = False
    allow_drivers: tuple[str, ...] = ()
    val: Any = None

    def __post_init__(self) -> None:
        parse_buffer(self.point_buffer)
        if self.images is not None and not self.images.is_dir():
            what = "is not a folder" if self.images.exists() else "no such folder"
            raise DataError([Problem(str(self.images), None, what, "Pass the folder that holds the images")])

    @property
    def only_class(self) -> str:
        """The label of rows whose file names no class at all."""
        return self.classes[0] if self.classes is not None and len(self.classes) == 1 else ONLY_CLASS


class Buffer(NamedTuple):
    """Half the side of the boxes that points become, in pixels or in metres on the ground."""

    half_side: float
    in_metres: bool


def parse_buffer(buffer: float | str | None) -> Buffer | None:
    """Pixels as a number, metres with their unit: 10 or "2m"."""
    if buffer is None:
        return None
    text = str(buffer).strip()
    try:
        half_side = float(text.removesuffix("m"))
    except ValueError:
        half_side = math.nan
    if isinstance(buffer, bool) or not 0 < half_side < math.inf:
        raise OptionError(
            f"point_buffer={buffer!r} must be half the side of a box: a number of pixels above 0, or metres such as 2m."
        )
    return Buffer(half_side, text.endswith("m"))


def parse_classes(
    classes: PathLike | Sequence[str] | Mapping[str, int] | Mapping[int, str] | None,
) -> tuple[str, ...] | None:
    """Class names in their order: a list, "A,B", a dict with numbers, or a file with name or name,number per line."""
    if classes is None:
        return None
    if isinstance(classes, os.PathLike) or (isinstance(classes, str) and _is_class_file(classes)):
        names = class_file(Path(classes))
    elif isinstance(classes, Mapping):
        names = _order_names(classes)
    elif isinstance(classes, Set):
        raise OptionError(f"classes={classes!r}: a set has no order; write a list.")
    else:
        pieces = classes.split(",") if isinstance(classes, str) else [str(name) for name in classes]
        names = tuple(piece.strip() for piece in pieces if piece.strip())
    if not names:
        raise OptionError(f"classes={classes!r} names no class; write A,B or a file with one name per line.")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise OptionError(f"classes={classes!r} names {', '.join(repeated)} more than once.")
    return names


def _order_names(classes: Mapping[Any, Any]) -> tuple[str, ...]:
    """The names of {"Dead": 0, "Alive": 1} or {0: "Dead", 1: "Alive"} by their numbers."""
    pairs = [pair if isinstance(pair[0], str) else pair[::-1] for pair in classes.items()]
    if not all(isinstance(name, str) and name.strip() and _is_whole(number) for name, number in pairs):
        raise OptionError(f"classes={classes!r} must be names with numbers, such as {{'Dead': 0, 'Alive': 1}}.")
    if sorted(number for _, number in pairs) != list(range(len(pairs))):
        raise OptionError(f"classes={classes!r}: number the classes 0, 1, 2 …, each once.")
    return tuple(name.strip() for name, _ in sorted(pairs, key=lambda pair: pair[1]))


def _is_whole(number: object) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool)


def _is_class_file(text: str) -> bool:
    return "," not in text and (Path(text).is_file() or text.endswith((".txt", ".csv")))


def class_file(path: Path) -> tuple[str, ...]:
    """The names in a file: one per line, or with their numbers, which give the order; blank lines are left out."""
    try:
        text = read_text(path, "utf-8-sig")
    except OSError as error:
        raise DataError([Problem(str(path), None, f"cannot be read: {error.strerror}", "Check the path")]) from error
    except UnicodeDecodeError as error:
        raise DataError(
            [Problem(str(path), None, "is not a text in UTF-8", "Write one class name per line")]
        ) from error
    lines = {number: line.strip() for number, line in enumerate(text.splitlines(), start=1) if line.strip()}
    numbered = {number: found for number, line in lines.items() if (found := _NUMBERED.fullmatch(line))}
    return _in_order(path, lines, numbered) if numbered else tuple(lines.values())


# Dead,0 as DeepForest and keras-retinanet write it.
_NUMBERED = re.compile(r'"?(?P<name>[^"]*?)"?\s*[,;\t]\s*(?P<number>\d+)')


def _in_order(path: Path, lines: dict[int, str], numbered: dict[int, re.Match[str]]) -> tuple[str, ...]:
    """Names by their numbers, which must be 0, 1, 2 …, each once; a first line without a number is a header."""
    remedy = "Number the classes 0, 1, 2 …, each once"
    unnumbered = [line for line in lines if line not in numbered]
    if unnumbered and unnumbered != [next(iter(lines))]:
        what = f"{lines[unnumbered[-1]]!r} has no number, and other classes have one"
        raise DataError([Problem(str(path), unnumbered[-1], what, "Write a number after every name, or after none")])
    names: dict[int, str] = {}
    for line, found in numbered.items():
        number = int(found["number"])
        if number in names:
            what = f"{names[number]!r} and {found['name']!r} have the number {number}"
            raise DataError([Problem(str(path), line, what, remedy)])
        names[number] = found["name"]
    missing = sorted(set(range(len(names))) - set(names))
    if missing:
        what = f"no class has the number {missing[0]}, and {names[max(names)]!r} has {max(names)}"
        raise DataError([Problem(str(path), None, what, remedy)])
    return tuple(names[number] for number in sorted(names))
