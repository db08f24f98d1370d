"""Name patterns: which part of a file's name is meant."""

from __future__ import annotations

import pickle

import pytest

import penstock as ps
from penstock.formats.patterns import NamePattern


@pytest.mark.parametrize(
    ("pattern", "name", "value"),
    [
        ("{label}.*", "cat.0.jpg", "cat"),
        ("{label}.*.jpg", "dog.17.jpg", "dog"),
        ("{animal}_*", "m12_day_3.mp4", "m12"),
        ("*_{animal}_*", "day3_m12_a.mp4", "m12"),
        ("{site}", "OSBS_029.tif", "OSBS_029.tif"),
        ("day?_{animal}.mp4", "day3_m12.mp4", "m12"),
        ("{label}.*", "größe 1.2.jpg", "größe 1"),
        ("a+b({x}).jpg", "a+b(7).jpg", "7"),
    ],
)
def test_braces_take_what_stands_there(pattern: str, name: str, value: str) -> None:
    assert NamePattern(pattern).value(name) == value


@pytest.mark.parametrize(
    ("pattern", "name"),
    [("{label}.*", "cat"), ("{animal}_*", "_day3.mp4"), ("day?_{animal}", "day12_m"), ("{x}.jpg", "cat.jpeg")],
)
def test_a_name_that_does_not_fit_has_no_value(pattern: str, name: str) -> None:
    assert NamePattern(pattern).value(name) is None


@pytest.mark.parametrize("pattern", ["", "*.jpg", "{a}_{b}", "{}_*", "{a b}.*", "{label"])
def test_a_pattern_names_exactly_one_value(pattern: str) -> None:
    with pytest.raises(ps.OptionError, match="exactly one value in braces"):
        NamePattern(pattern)


def test_a_pattern_for_labels_must_say_label() -> None:
    with pytest.raises(ps.OptionError, match=r"such as '\{label\}_\*'"):
        NamePattern("{class}.*", "label")
    assert NamePattern("{label}.*", "label").word == "label"


def test_a_pattern_comes_through_pickle() -> None:
    assert pickle.loads(pickle.dumps(NamePattern("{label}.*"))).value("cat.0.jpg") == "cat"
