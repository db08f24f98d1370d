"""Classes as files store them: a number, a name, or both; here they become numbers from 0 into a list of names.

* Where names are stored, they decide. With `classes` given, a name must be one of them.
* Numbers stay as they are: class k is number k. A file whose numbers begin with 1 is read with `first_class=1`.
* `first_class="auto"` is 1 where 0 never occurs and, with `classes` given, the highest number is how many they are;
  and for objects in boxes, whose numbers begin with 1 by custom, where 0 never occurs. Else it is 0.
* Without `classes`, a file classes.txt beside the files counts as them: one name per line, the same in every folder.
* Numbers first: names that have no number follow them. Where one name has two numbers, or one number two names, only
  names count, in the order of the alphabet.
* −1 is "no label". A number that has no name is called by itself: class "7".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from penstock.errors import DataError, OptionError, Problem
from penstock.formats.paths import PathLike
from penstock.formats.reading import parse_classes

Stored = tuple[int | None, str | None]  # a number, a name
First = int | Literal["auto"]
NO_LABEL = -1
# More are no classes but numbers of something else.
MOST_CLASSES = 1_000_000


@dataclass(frozen=True)
class ClassNumbers:
    """How a stored class becomes a number of ours; `unknown` are the stored ones that none of the names fits."""

    names: tuple[str, ...]
    by_name: bool
    first: int
    unknown: tuple[str, ...] = ()

    def number(self, stored: Stored) -> int:
        """Our number of a class; −1 where there is none."""
        number, name = stored
        if self.by_name and name:
            return self.names.index(name) if name in self.names else NO_LABEL
        if number is None or number == NO_LABEL:
            return NO_LABEL
        found = number - self.first
        return found if 0 <= found < len(self.names) else NO_LABEL

    def as_dict(self) -> dict[str, Any]:
        return {"names": self.names, "by_name": self.by_name, "first": self.first, "unknown": self.unknown}


def class_numbers(
    stored: Iterable[Stored], given: tuple[str, ...] | None, first_class: First, *, usual_first: int
) -> ClassNumbers:
    """Decide what the classes are, from every pair of number and name that occurs."""
    pairs = set(stored)
    names = {name for _, name in pairs if name}
    numbers = {number for number, _ in pairs if number is not None and number != NO_LABEL}
    first = _first(numbers, given, first_class, usual_first)
    if given is not None:
        return _given(pairs, given, first)
    bound = {(number, name) for number, name in pairs if number not in (None, NO_LABEL) and name}
    by_number = {number: name for number, name in bound if number is not None}
    is_consistent = len(by_number) == len({name for _, name in bound}) == len(bound)
    if names and not (numbers and is_consistent):
        return ClassNumbers(tuple(sorted(names)), True, first)
    return _numbered(numbers, by_number, sorted(names - {*by_number.values()}), first)


def _first(numbers: set[int], given: tuple[str, ...] | None, first_class: First, usual_first: int) -> int:
    if first_class != "auto":
        return int(first_class)
    if 0 in numbers:
        return 0
    return 1 if given is not None and numbers and max(numbers) == len(given) else usual_first


def _given(pairs: set[Stored], given: tuple[str, ...], first: int) -> ClassNumbers:
    by_name = any(name for _, name in pairs)
    found = ClassNumbers(given, by_name, first)
    unknown = {
        str(name or number)
        for number, name in pairs
        if (name or number not in (None, NO_LABEL)) and found.number((number, name)) == NO_LABEL
    }
    return ClassNumbers(given, by_name, first, tuple(sorted(unknown)))


def _numbered(numbers: set[int], by_number: Mapping[int, str | None], others: list[str], first: int) -> ClassNumbers:
    """A name for each number up to the highest, and then the names that have none."""
    if not numbers:
        return ClassNumbers((), False, first)
    if max(numbers) - first >= MOST_CLASSES:
        raise OptionError(
            f"a label is {max(numbers):,}: that is no class. "
            'Say what it is: fields={"label": ps.Field("<its name in the files>", "number", "int64"), …}.'
        )
    names = tuple(by_number.get(number) or str(number) for number in range(first, max(numbers) + 1))
    unknown = tuple(str(number) for number in sorted(numbers) if number < first)
    return ClassNumbers((*names, *others), bool(by_number or others), first, unknown)


def classes_from(plain: Mapping[str, Any]) -> ClassNumbers:
    """What `as_dict` gave, also after JSON made lists of tuples."""
    return ClassNumbers(tuple(plain["names"]), plain["by_name"], plain["first"], tuple(plain["unknown"]))


def stated_classes(classes: PathLike | Sequence[str] | None, files: Sequence[str]) -> tuple[str, ...] | None:
    """The classes that the user gives, else those of classes.txt beside the files; folders must agree about them."""
    if classes is not None:
        return parse_classes(classes)
    beside = [Path(folder, "classes.txt") for folder in dict.fromkeys(str(Path(file).parent) for file in files)]
    stated = {str(file): names for file in beside if file.is_file() and (names := parse_classes(file))}
    _refuse_other_lists(stated)
    return next(iter(stated.values()), None)


def _refuse_other_lists(stated: Mapping[str, tuple[str, ...]]) -> None:
    """One number must not mean two classes."""
    first = next(iter(stated), "")
    problems = [
        Problem(
            file,
            None,
            f"it lists {', '.join(names)}, and {first} lists {', '.join(stated[first])}",
            "Pass the classes that hold for all files, or open the folders one by one and join them with ps.concat",
        )
        for file, names in stated.items()
        if names != stated[first]
    ]
    if problems:
        raise DataError(problems)
