"""Reading and checking a recipe: every key and value at once, so that one look is enough to correct it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from penstock.errors import OptionError, Problem, nearest
from penstock.recipes.given import STANDARD_TAGS, Given, Place, given_in_file, given_on_the_command_line
from penstock.recipes.sections import IGNORED, KIND, OPTIONS, SECTIONS, legal_keys, task_kinds
from penstock.recipes.unknown_keys import unknown_key
from penstock.recipes.values import Mismatch, value_of
from penstock.tasks.kinds import task_class


class Value(NamedTuple):
    """A value of the right type, and where it stands."""

    value: Any
    place: Place


Values = dict[tuple[str, ...], Value]  # by (section, key)


def sections_of(file: Path, overrides: Sequence[str] = ()) -> tuple[str, dict[str, dict[str, Any]]]:
    """The kind of task and the values of every section, or a OptionError with everything that is wrong."""
    given, problems = _given(file, overrides)
    kind = _kind(given, file, problems)
    values = _values(given, kind, problems)
    for section, options in OPTIONS.items():
        problems += _refused(options, values, (section,), file)
    if not any(each.path == ("data", "path") for each in given):
        remedy = "Write data: and below it path: pets.pack, or add data.path=pets.pack to the command"
        problems.append(Problem(file.as_posix(), None, "data.path is missing", remedy))
    # Asked last, because making a task loads torch: a misspelt key is said within a second.
    problems = problems or _refused(task_class(kind), values, ("task", "model"), file)
    if problems:
        raise OptionError("\n".join(map(str, sorted(problems, key=lambda problem: problem.row or 0))))
    return kind, {section: _of_section(values, section) for section in SECTIONS}


def _given(file: Path, overrides: Sequence[str]) -> tuple[list[Given], list[Problem]]:
    written, problems = given_in_file(file)
    typed = [given_on_the_command_line(override) for override in overrides]
    problems += [each for each in typed if isinstance(each, Problem)]
    return _merged(written, [each for each in typed if isinstance(each, Given)]), problems


def _merged(written: Sequence[Given], overrides: Iterable[Given]) -> list[Given]:
    """The command line has the last word; a path below a key changes one entry of it."""
    found = {each.path: each for each in written}
    for override in overrides:
        each = _entry_changed(found.get(override.path[:2]), override) if len(override.path) == 3 else override
        found[each.path] = each
    return list(found.values())


def _entry_changed(there: Given | None, entry: Given) -> Given:
    pairs = list(there.node.value) if there is not None and isinstance(there.node, yaml.MappingNode) else []
    kept = [pair for pair in pairs if pair[0].value != entry.path[2]]
    key = yaml.ScalarNode(STANDARD_TAGS + "str", entry.path[2])
    node = yaml.MappingNode(STANDARD_TAGS + "map", [*kept, (key, entry.node)])
    return Given(entry.path[:2], node, entry.place)


def _kind(given: Sequence[Given], file: Path, problems: list[Problem]) -> str:
    """The kind of task, or the first of them where it is missing or wrong, so that the other keys can be checked."""
    kinds = task_kinds()
    legal = ", ".join(kinds)
    found = next((each for each in given if each.path == ("task", KIND)), None)
    if found is None:
        remedy = f"Write task: and below it kind: {kinds[0]}"
        problems.append(Problem(file.as_posix(), None, f"task.kind is missing; there is {legal}", remedy))
        return kinds[0]
    kind = str(found.node.value)
    if kind in kinds:
        return kind
    problems.append(found.place.problem(f"task.kind={kind} is not one of {legal}", nearest(kind, kinds).strip()))
    return kinds[0]


def _values(given: Sequence[Given], kind: str, problems: list[Problem]) -> Values:
    """The values of all keys that are right; what is wrong goes to the problems."""
    legal = legal_keys(kind)
    values: Values = {}
    for each in given:
        if each.path[0] in IGNORED or each.path == ("task", KIND):
            continue
        if each.path not in legal:
            problems += unknown_key(each, legal)
            continue
        try:
            values[each.path] = Value(value_of(each.node, legal[each.path].hint), each.place)
        except Mismatch as mismatch:
            problems.append(each.place.problem(f"{each.name} {mismatch}"))
    return values


def _of_section(values: Values, section: str) -> dict[str, Any]:
    return {path[1]: each.value for path, each in values.items() if path[0] == section}


def _refused(make: Any, values: Values, sections: tuple[str, ...], file: Path) -> list[Problem]:
    """What a dataclass says to values of the right type: to each value alone, or else to all together."""
    mine = {path: each for path, each in values.items() if path[0] in sections}
    together = _complaint(make, {path[1]: each.value for path, each in mine.items()})
    if together is None:
        return []
    alone = []
    for (section, name), (value, place) in mine.items():
        complaint = _complaint(make, {name: value})
        if complaint is not None:
            alone.append(place.problem(f"{section}.{complaint}"))
    return alone or [Problem(file.as_posix(), None, f"{sections[0]}: {together}", "")]


def _complaint(make: Any, values: Mapping[str, Any]) -> str | None:
    try:
        make(**values)
    except OptionError as error:
        return str(error)
    return None
