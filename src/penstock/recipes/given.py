"""What a user wrote: YAML as keys with the place of each, without making any object of it.

Values stay nodes, and become values of the type that their key has: `no` is a class name where texts are asked for, and
`1e-4` is a number where numbers are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from penstock.errors import Problem
from penstock.storage.documents import BoundedLoader
from penstock.storage.plain_files import read_file

STANDARD_TAGS = "tag:yaml.org,2002:"
PYTHON_TAGS = STANDARD_TAGS + "python"
COMMAND_LINE = "command line"
SYNTAX_REMEDY = "A recipe is YAML: sections, and below them key: value, indented by spaces"


@dataclass(frozen=True)
class Place:
    """Where a key stands; `line` is None on the command line."""

    file: str
    line: int | None

    def problem(self, what: str, remedy: str = "") -> Problem:
        return Problem(self.file, self.line, what, remedy)


@dataclass(frozen=True)
class Given:
    """One key with its value, and where it stands."""

    path: tuple[str, ...]
    node: yaml.Node
    place: Place

    @property
    def name(self) -> str:
        return ".".join(self.path)


class _Loader(BoundedLoader):
    """Refuses aliases: a few lines of them can stand for more values than memory has."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark
            raise yaml.MarkedYAMLError(problem="anchors and aliases are not for recipes", problem_mark=mark)
        return super().compose_node(parent, index)


def composed(text: str | bytes) -> yaml.Node | None:
    """The nodes of a YAML text; None where it is empty."""
    loader = _Loader(text)
    try:
        node: yaml.Node | None = loader.get_single_node()
        return node
    finally:
        loader.dispose()


def given_in_file(path: Path) -> tuple[list[Given], list[Problem]]:
    """Every section and section.key of a file, and what is wrong with the text as such."""
    file = path.as_posix()
    try:
        root = composed(read_file(path))
    except yaml.YAMLError as error:
        return [], [_syntax_problem(file, error)]
    if root is None:
        return [], []
    if not isinstance(root, yaml.MappingNode):
        return [], [_place(file, root).problem("there are no sections here", SYNTAX_REMEDY)]
    return list(_keys(root, file)), list(_problems(root, (), file))


def _syntax_problem(file: str, error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or " ".join(str(error).split())
    return Place(file, None if mark is None else mark.line + 1).problem(str(what), SYNTAX_REMEDY)


def _problems(node: yaml.Node, path: tuple[str, ...], file: str) -> Iterator[Problem]:
    """What no recipe may have, at any depth: tags that ask for objects, keys that are no words or come twice."""
    if not node.tag.startswith(STANDARD_TAGS) or node.tag.startswith(PYTHON_TAGS):
        yield _place(file, node).problem(f"{node.tag} is not a plain value", "Write the value without a tag")
    if isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _problems(each, path, file)
    if isinstance(node, yaml.MappingNode):
        yield from _repeated(node, path, file)
        for key, value in node.value:
            yield from _problems(value, (*path, str(key.value)), file)


def _repeated(node: yaml.MappingNode, path: tuple[str, ...], file: str) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for key, _ in node.value:
        place = _place(file, key)
        if not isinstance(key, yaml.ScalarNode):
            yield place.problem("a key must be a word", SYNTAX_REMEDY)
        elif key.value in first:
            name = ".".join((*path, key.value))
            yield place.problem(f"{name} is here again, after line {first[key.value]}", "Keep one of them")
        else:
            first[key.value] = key.start_mark.line + 1


def _keys(root: yaml.MappingNode, file: str) -> Iterator[Given]:
    """The sections, each followed by its keys."""
    for section, content in root.value:
        yield Given((str(section.value),), content, _place(file, section))
        if isinstance(content, yaml.MappingNode):
            for key, value in content.value:
                yield Given((str(section.value), str(key.value)), value, _place(file, key))


def given_on_the_command_line(override: str) -> Given | Problem:
    """One key=value."""
    name, equals, text = override.partition("=")
    place = Place(COMMAND_LINE, None)
    if not equals or not name:
        return place.problem(f"{override!r} is not key=value", "Write it like train.epochs=5")
    return Given(tuple(name.strip().split(".")), _override_node(text), place)


def _override_node(text: str) -> yaml.Node:
    """The value as YAML; what is not YAML, such as *.tfrecord, is text."""
    try:
        node = composed(text)
    except yaml.YAMLError:
        node = yaml.ScalarNode(STANDARD_TAGS + "str", text, style="'")
    return node or yaml.ScalarNode(STANDARD_TAGS + "null", "")


def is_empty(node: yaml.Node) -> bool:
    """Whether nothing was written: no value, ~ or null."""
    return isinstance(node, yaml.ScalarNode) and node.style is None and node.value in ("", "~", "null")


def _place(file: str, node: yaml.Node) -> Place:
    return Place(file, node.start_mark.line + 1)
