"""Hints of Python's arguments in the words of the command that runs: units='frames' becomes --units frames.

A command that takes a recipe has keys in place of most options: there memory='2 GB' becomes feed.memory='2 GB'. What
the command has no word for stays as Python has it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import click

_VALUE = r"'[^'\n]*'|\"[^\"\n]*\"|\[[^\]\n]*\]|\([^)\n]*\)|…|\.\.\.|[\w.%-]*\w"
_LISTED = re.compile(r"[^,\s\[\]()'\"]+")
_PLAIN = re.compile(r"[\w.,:/%+=…-]+")  # what a shell takes without quotes
_OF_RECIPES = ("train", "doctor")
_SWITCHED = {"True": "true", "False": "false", "None": "none"}


class Spelling(NamedTuple):
    """How a command writes an argument: as an option, with another one that turns it off, or as a key of a recipe."""

    word: str
    off: str = ""
    is_key: bool = False
    repeats: bool = False  # the option is given once for each value


def in_command_words(text: str, spellings: Mapping[str, Spelling]) -> str:
    """A message with arguments written as the command has them."""
    if not spellings:
        return text
    names = "|".join(sorted(map(re.escape, spellings), key=len, reverse=True))
    # Not after a dot: task.size=fast is a key of a recipe, which commands take as it is.
    argument = re.compile(rf"(?<![\w.\-])(?P<name>{names})=(?P<value>{_VALUE})")
    return argument.sub(lambda found: _spelled(spellings[found["name"]], found["value"]), text)


def in_own_words(text: str) -> str:
    """A message with arguments written as the command has them that runs now."""
    context = click.get_current_context()
    return in_command_words(text, spellings_of(context.find_root().command, context.command_path.split()[1:]))


def spellings_of(root: click.Command, arguments: Sequence[str]) -> dict[str, Spelling]:
    """What the command that these arguments name calls the arguments of Python."""
    names, command = _found(root, arguments)
    found: dict[str, Spelling] = {}
    if names[:1] and names[0] in _OF_RECIPES:
        found |= _recipe_keys()
    if names[:1] == ["check"]:  # what it finds is often left to packing
        found |= _options(_found(root, ["pack", *names[1:]])[1])
    return found | _options(command)


def _found(root: click.Command, arguments: Sequence[str]) -> tuple[list[str], click.Command]:
    """The command that these arguments begin with, and the words that name it."""
    names, command, context = [], root, click.Context(root)
    for word in arguments:
        if not isinstance(command, click.Group) or (found := command.get_command(context, word)) is None:
            break
        names.append(word)
        command = found
    return names, command


def _options(command: click.Command) -> dict[str, Spelling]:
    return {str(option.name): _of_option(option) for option in command.params if isinstance(option, click.Option)}


def _of_option(option: click.Option) -> Spelling:
    long = [word for word in option.opts if word.startswith("--")]
    return Spelling((long or option.opts)[0], "".join(option.secondary_opts[:1]), repeats=option.multiple)


def _recipe_keys() -> dict[str, Spelling]:
    """The keys of recipes by their last part; one that tasks have in different sections is left as it is."""
    from penstock.cli.options import COLUMN_OPTIONS, SOURCE_OPTIONS
    from penstock.recipes.sections import legal_keys, task_kinds

    found: dict[str, set[str]] = {}
    for kind in task_kinds():
        for section, name in legal_keys(kind):
            found.setdefault(name, set()).add(f"{section}.{name}")
    of_sources = {name: {f"data.options.{name}"} for name in (*SOURCE_OPTIONS, *COLUMN_OPTIONS)}
    alone = {name: paths.pop() for name, paths in (of_sources | found).items() if len(paths) == 1}
    return {name: Spelling(path, is_key=True) for name, path in alone.items()}


def _spelled(spelling: Spelling, value: str) -> str:
    if spelling.is_key:
        return f"{spelling.word}={_quoted(_SWITCHED.get(value, _bare(value)))}"
    if value in ("True", "False"):
        return spelling.word if value == "True" else spelling.off or f"no {spelling.word}"
    if spelling.repeats and value[0] in "[(":
        return " ".join(f"{spelling.word} {_quoted(one)}" for one in _LISTED.findall(value))
    return f"{spelling.word} {_quoted(_bare(value))}"


def _bare(value: str) -> str:
    """A value without the marks of Python."""
    if value[0] in "[(":
        return ",".join(_LISTED.findall(value))
    return value[1:-1] if value[0] in "'\"" else value


def _quoted(value: str) -> str:
    return value if _PLAIN.fullmatch(value) else f"'{value}'"
