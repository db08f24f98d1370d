from __future__ import annotations

import functools
import random
import re
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from penstock.flow.caching.identity import UnknownIdentity, identity_of_value


class Above:
    """A callable object of the user."""

    offset = 1

    def __init__(self, least: float) -> None:
        self.least = least

    def __call__(self, sample: Any) -> bool:
        return bool(sample > self.least + self.offset)


class Slotted:
    __slots__ = ("least",)

    def __init__(self, least: float) -> None:
        self.least = least

    def __call__(self, sample: Any) -> bool:
        return bool(sample > self.least)


@dataclass(frozen=True)
class Settings:
    least: float


def above(least: float) -> Any:
    return lambda sample: sample > least


def with_settings(settings: Any) -> Any:
    return lambda sample: sample > settings.least


def decorated(least: float) -> Any:
    @functools.wraps(abs)
    def inner(sample: Any) -> bool:
        return bool(sample > least)

    return inner


MAKERS = [
    above,
    Above,
    Slotted,
    decorated,
    lambda least: Above(least).__call__,
    lambda least: functools.partial(max, least),
    lambda least: functools.lru_cache(above(least)),
    lambda least: {1, least}.__contains__,
    lambda least: re.compile(f"a{least}").match,
    lambda least: with_settings(Settings(least)),
    lambda least: with_settings(np.array([least, 2.0])),
    lambda least: with_settings([{"a": (least, {least})}]),
    lambda least: random.Random(least).random,
]


@pytest.mark.parametrize("make", MAKERS)
def test_equal_values_inside_are_equal_and_others_are_not(make: Any) -> None:
    assert identity_of_value(make(1.5)) == identity_of_value(make(1.5))
    assert identity_of_value(make(1.5)) != identity_of_value(make(2.5))


def test_the_code_of_a_class_and_its_values_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = identity_of_value(Above(1.0))
    monkeypatch.setattr(Above, "offset", 2)
    changed = identity_of_value(Above(1.0))
    monkeypatch.setattr(Above, "__call__", lambda self, sample: True)
    assert len({repr(one) for one in (before, changed, identity_of_value(Above(1.0)))}) == 3


def test_functions_of_python_and_of_numpy_are_known_by_their_names() -> None:
    described = [repr(identity_of_value(value)) for value in (len, abs, np.add, np.multiply, np.mean, re.match)]
    assert len(set(described)) == 6


def test_functions_that_call_themselves_have_an_end() -> None:
    def outer(number: int) -> int:
        return outer(number - 1) if number else recursive(3)

    assert identity_of_value(outer) == identity_of_value(outer)


def recursive(number: int) -> int:
    return recursive(number - 1) if number else 0


@pytest.mark.parametrize("value", [threading.Lock(), (number for number in range(3))])
def test_what_nobody_can_describe_is_unknown(value: Any) -> None:
    def uses(sample: Any) -> Any:
        return value

    with pytest.raises(UnknownIdentity):
        identity_of_value(uses)


def test_an_object_may_say_itself_what_it_is() -> None:
    class Named:
        def __init__(self, name: str) -> None:
            self.name, self.lock = name, threading.Lock()

        def __call__(self, sample: Any) -> bool:
            return True

        def fingerprint(self) -> str:
            return self.name

    assert identity_of_value(Named("a")) == identity_of_value(Named("a")) != identity_of_value(Named("b"))


def test_another_process_finds_the_same() -> None:
    code = """
import numpy as np
from penstock.flow.caching.identity import identity_of_value
LEAST = {"b", "a", "c"}
def wanted(sample, kinds=frozenset("xyz")):
    return sample in {"cat", "dog", "bird"} and sample not in LEAST and np.abs(3) in kinds
print(identity_of_value(wanted))
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONHASHSEED": str(seed)}, check=True
        ).stdout
        for seed in range(3)
    }
    assert len(outputs) == 1
