"""Values of the type that their key has, from what a user wrote.

A plain walk over the type hints of the dataclasses: it needs no library, knows where each value stands, and reads texts
as they were written, which a check of values that YAML has already guessed the types of cannot.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

import yaml

from penstock.errors import nearest
from penstock.recipes.given import is_empty
from penstock.runs.layout import WORDS_FOR_NONE

WORDS_FOR_TRUE = ("true", "on", "yes")
WORDS_FOR_FALSE = ("false", "off", "no")
INTEGER = re.compile(r"[-+]?[0-9][0-9_]*")
MOST_SHOWN = 60
NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan")


class Mismatch(ValueError):  # noqa: N818 - it never reaches a user
    """A value is not what its key asks for; the message says what that is."""


def value_of(node: yaml.Node, hint: Any) -> Any:
    """The value of a node as its key's type; Mismatch says what was expected and what is there."""
    for option in _in_order(hint):
        try:
            return _readers(option)(node, option)
        except Mismatch:
            continue
    raise Mismatch(f"must be {expected(hint)}, and is {shown(node)}{_near_choice(node, hint)}")


def _in_order(hint: Any) -> list[Any]:
    """The members of a union, the choosiest first: a text may be anything."""
    options = list(get_args(hint)) if get_origin(hint) in (Union, types.UnionType) else [hint]
    ranks: list[Any] = [type(None), bool, int, float]
    return sorted(options, key=lambda option: ranks.index(option) if option in ranks else 5 + (option in (str, Any)))


def _readers(hint: Any) -> Callable[[yaml.Node, Any], Any]:
    plain = {type(None): _none, bool: _boolean, int: _integer, float: _number, str: _text, Any: _anything}
    if hint in plain:
        return plain[hint]
    origin = get_origin(hint)
    if origin is Literal:
        return _choice
    if origin in (tuple, list, Sequence):
        return _sequence
    if origin in (dict, Mapping) or hint is dict:
        return _mapping
    raise TypeError(f"a recipe cannot hold values of the type {hint}")


def _word(node: yaml.Node) -> str:
    """What stands there without quotes."""
    if not isinstance(node, yaml.ScalarNode) or node.style is not None:
        raise Mismatch
    return str(node.value)


def _none(node: yaml.Node, _: Any) -> None:
    if _word(node).lower() not in WORDS_FOR_NONE:
        raise Mismatch


def _boolean(node: yaml.Node, _: Any) -> bool:
    word = _word(node).lower()
    if word not in WORDS_FOR_TRUE + WORDS_FOR_FALSE:
        raise Mismatch
    return word in WORDS_FOR_TRUE


def _integer(node: yaml.Node, _: Any) -> int:
    word = _word(node)
    if not INTEGER.fullmatch(word):
        raise Mismatch
    return int(word.replace("_", ""))


def _number(node: yaml.Node, _: Any) -> float:
    word = _word(node).lower()
    if not NUMBER.fullmatch(word):
        raise Mismatch
    return float(word.replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))


def _text(node: yaml.Node, _: Any) -> str:
    if not isinstance(node, yaml.ScalarNode) or is_empty(node):
        raise Mismatch
    return str(node.value)


def _choice(node: yaml.Node, hint: Any) -> Any:
    """One of a few words or numbers, as they are written: 16 is the choice "16" too."""
    if isinstance(node, yaml.ScalarNode):
        for choice in get_args(hint):
            if str(choice) == node.value:
                return choice
    raise Mismatch


def _sequence(node: yaml.Node, hint: Any) -> Any:
    if not isinstance(node, yaml.SequenceNode):
        raise Mismatch
    origin, members = get_origin(hint), get_args(hint)
    if origin is tuple and members[-1] is not Ellipsis:
        if len(members) != len(node.value):
            raise Mismatch
        return tuple(value_of(each, member) for each, member in zip(node.value, members, strict=True))
    values = [value_of(each, members[0]) for each in node.value]
    return values if origin is list else tuple(values)


def _mapping(node: yaml.Node, hint: Any) -> dict[str, Any]:
    if not isinstance(node, yaml.MappingNode):
        raise Mismatch
    member = get_args(hint)[1] if get_args(hint) else Any
    return {str(key.value): value_of(value, member) for key, value in node.value}


def _anything(node: yaml.Node, _: Any) -> Any:
    """Where any type is legal: as YAML 1.2 has it, in which `no` and `off` are texts."""
    if isinstance(node, yaml.SequenceNode):
        return [value_of(each, Any) for each in node.value]
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, dict)
    if is_empty(node):
        return None
    if node.style is None and node.value in ("true", "false"):
        return node.value == "true"
    return value_of(node, int | float | str)


def expected(hint: Any) -> str:
    """A type in plain words."""
    return " or ".join(dict.fromkeys(_words(option) for option in reversed(_in_order(hint))))


def _words(hint: Any) -> str:
    plain = {
        type(None): "none",
        bool: "on or off",
        int: "a whole number",
        float: "a number",
        str: "text",
        Any: "a value",
    }
    if hint in plain:
        return plain[hint]
    origin = get_origin(hint)
    if origin is Literal:
        return ", ".join(map(str, get_args(hint)))
    if origin in (dict, Mapping) or hint is dict:
        return "keys and values"
    members = [member for member in get_args(hint) if member is not Ellipsis]
    return f"a list [{', '.join(expected(member) for member in members)}{', …' if len(members) == 1 else ''}]"


def shown(node: yaml.Node) -> str:
    """What a user wrote, short enough for a message."""
    if isinstance(node, yaml.MappingNode):
        return "a set of keys"
    if isinstance(node, yaml.SequenceNode):
        return f"[{_short(', '.join(map(shown, node.value)))}]"
    return "empty" if is_empty(node) else repr(_short(str(node.value)))


def _short(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + "…"


def _near_choice(node: yaml.Node, hint: Any) -> str:
    choices = [
        str(choice) for option in _in_order(hint) if get_origin(option) is Literal for choice in get_args(option)
    ]
    return f".{nearest(str(node.value), choices)}" if nearest(str(node.value), choices) else ""
