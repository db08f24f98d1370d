"""Everything that Penstock raises on purpose.

PenstockError                 exit  for
├─ OptionError  (ValueError)    2   an option or recipe is wrong: the key, the legal values, the nearest match
├─ DataError                    3   the user's files: a list of Problem(file, row, what, remedy)
├─ PackError                    4   a pack is missing, damaged, or of another format version
├─ HopError                     3   one sample failed on its way: which hop, which sample, which file
├─ TrainingError                5   a training cannot go on: a loss that is no number, too little memory or disk
└─ MissingExtra (ImportError)   2   the exact pip line to run

Deep code raises the short reason; the hop or the verb adds sample and file once.
`RecipeError` is the old name of OptionError.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import re
from abc import ABCMeta
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Any

SHOWN_PROBLEMS = 5
# Words that have less in common are not taken for each other.
LEAST_LIKENESS = 0.6
# Comparing a word with more of them would be noticed.
MOST_COMPARED = 2_000
LEARNING_LIBRARIES = ("torch", "torchvision", "lightning", "torchmetrics", "kornia", "safetensors")
_WITHOUT_LINES = (
    *(".json", ".geojson", ".gpkg", ".shp", ".fgb", ".parquet", ".pq", ".geoparquet", "DataFrame"),
    *(".h5", ".hdf5", ".npy", ".npz", ".arrow", ".mds", "arrays"),
)

_VIDEOS = (".mp4", ".avi", ".mov", ".mkv", ".m4v", ".webm", ".mpg", ".mpeg", ".wmv", ".ts")


class PenstockError(Exception):
    """The root of the tree; `exit_code` is what the command line leaves with."""

    exit_code = 70


class OptionError(PenstockError, ValueError):
    """An option or recipe is wrong."""

    exit_code = 2


RecipeError = OptionError  # its old name


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong with the user's files: where, what, and what to do about it.

    `row` is the line of a text file as an editor counts it (the header is line 1), or the number of
    the feature, record or frame in a file without lines; None when the whole file is meant. `unreadable` says that
    it is a whole sample that cannot be had, which packing may be told to leave out.
    """

    file: str
    row: int | None
    what: str
    remedy: str
    warning: bool = False
    unreadable: bool = False

    def __str__(self) -> str:
        where = self.file if self.row is None else f"{self.file} {_row_word(self.file)} {self.row}"
        text = f"{where}: {self.what}. {self.remedy}".rstrip(". ")
        return text if text.endswith(("?", "!")) else text + "."

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def _row_word(file: str) -> str:
    """Files that an editor shows have lines, videos have frames, the others have records."""
    if file.lower().endswith(_VIDEOS):
        return "frame"
    return "record" if file.endswith(_WITHOUT_LINES) else "line"


class DataError(PenstockError):
    """The user's files have problems; all of them are in `problems`, the first five in the message."""

    exit_code = 3

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__(self._message())

    @property
    def is_unreadable(self) -> bool:
        """Whether it is about samples that cannot be had, and nothing else."""
        return all(problem.unreadable for problem in self.problems if not problem.warning)

    @property
    def reasons(self) -> str:
        return "; ".join(problem.what for problem in self.problems)

    def _message(self) -> str:
        shown = [str(problem) for problem in self.problems[:SHOWN_PROBLEMS]]
        hidden = len(self.problems) - len(shown)
        if hidden:
            shown.append(f"… and {hidden:,} more; penstock check --json lists all.")
        return "\n".join(shown)

    def __reduce__(self) -> tuple[type[DataError], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)


class PackError(PenstockError):
    """A pack is missing, damaged, locked, or of another format version."""

    exit_code = 4


class HopError(PenstockError):
    """One sample failed at one hop; the cause is chained."""

    exit_code = 3

    def __init__(self, hop: str, sample: str, reason: str, remedy: str = "") -> None:
        self.hop, self.sample, self.reason, self.remedy = hop, sample, reason, remedy
        super().__init__(f"{sample}: {hop} failed: {reason}.".replace("..", ".") + (f" {remedy}" if remedy else ""))

    def __reduce__(self) -> tuple[type[HopError], tuple[str, str, str, str]]:
        return type(self), (self.hop, self.sample, self.reason, self.remedy)


class TrainingError(PenstockError):
    """A training cannot go on; what it has reached is kept."""

    exit_code = 5


class MissingExtra(PenstockError, ImportError):  # noqa: N818 - the name that users see says what is missing
    """A library of an extra is not installed."""

    exit_code = 2


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import a library of an extra, or say the exact pip line that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        library = module.split(".")[0]
        if error.name is None or error.name.split(".")[0] != library:
            raise
        raise MissingExtra(f"{purpose} needs {library}. Run: pip install 'penstock[{extra}]'") from error


def require_learning(purpose: str) -> None:
    """Say the exact pip line where a library of the extra `train` is missing, without importing any of them."""
    for library in LEARNING_LIBRARIES:
        if importlib.util.find_spec(library) is None:
            raise MissingExtra(f"{purpose} needs {library}. Run: pip install 'penstock[train]'")


def nearest(word: str, legal: Iterable[str]) -> str:
    """Name the legal word that was probably meant, as the end of an error message."""
    found = nearest_name(word, legal)
    return "" if found is None else f" Did you mean {found!r}?"


def nearest_name(word: str, legal: Iterable[str]) -> str | None:
    """The legal word that is most like another one; None where none is.

    Case, blanks, dashes and leading zeros of numbers are what people vary most, so that words are compared with and
    without them.
    """
    bare = plain_word(word)
    best, best_likeness = None, LEAST_LIKENESS
    for one in dict.fromkeys(legal):
        pairs = ((word, one), (bare, plain_word(one)))
        likeness = max(difflib.SequenceMatcher(None, *pair).ratio() for pair in pairs)
        if likeness > best_likeness:
            best, best_likeness = one, likeness
    return best


def plain_word(word: str) -> str:
    """Without what people vary: case, blanks and dashes, leading zeros."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", re.sub(r"[\s_-]+", "", word.lower()))


def nearest_file(path: str) -> str:
    """Name the file that was probably meant, of those in the same folder."""
    folder = Path(path).parent
    there = sorted(file.name for file in folder.iterdir()) if folder.is_dir() else []
    found = nearest_name(Path(path).name, there[:MOST_COMPARED])
    return "" if found is None else f" Did you mean {(folder / found).as_posix()!r}?"


def one_of(name: str, value: str, legal: Sequence[str]) -> str:
    """Check at the door that an option has one of its legal values."""
    if value not in legal:
        raise OptionError(f"{name}={value!r} is not one of {', '.join(legal)}.{nearest(str(value), legal)}")
    return value


def refuse_unused(options: Any, name: str, reason: str) -> None:
    """Refuse an option of a dataclass that was changed and would do nothing; `reason` says why, and what to do."""
    default = next(field.default for field in fields(options) if field.name == name)
    value = getattr(options, name)
    if value != default:
        raise OptionError(f"{name}={value!r} would have no effect: {reason}")


class Sealing(ABCMeta):
    """The class of `Sealed`: an unknown keyword is answered with the nearest; objects are closed when they are made."""

    def __call__(cls, *values: Any, **named: Any) -> Any:
        try:
            made = super().__call__(*values, **named)
        except TypeError as error:
            hint = _nearest_keyword(cls, str(error))
            if not hint:
                raise
            raise TypeError(f"{error}.{hint}") from None
        object.__setattr__(made, "_is_made", True)
        return made


class Sealed(metaclass=Sealing):
    """Objects on which no new attribute can be set: a misspelt one would change nothing, in silence."""

    _is_made = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _, *others = inspect.signature(cls.__init__).parameters.values()
        # Else a signature would be that of the metaclass.
        cls.__signature__ = inspect.Signature(others)  # type: ignore[attr-defined]

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_made and not name.startswith("_") and name not in self.__dict__ and not hasattr(type(self), name):
            known = [one for one in dir(self) if not one.startswith("_")]
            kind = type(self).__name__
            raise AttributeError(f"{kind} has no attribute {name!r}, so it cannot be set.{nearest(name, known)}")
        object.__setattr__(self, name, value)


def _nearest_keyword(kind: type, message: str) -> str:
    """The keyword that was probably meant, if an error of Python says that one is unknown."""
    found = re.search(r"unexpected keyword argument '(\w+)'$", message)
    if found is None or not message.startswith(f"{kind.__name__}.__init__()"):
        return ""
    return nearest(found[1], list(inspect.signature(kind).parameters))
