"""Class names as people write them down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import DataError
from penstock.formats.reading import parse_classes


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Dead,0\nAlive,1\n", ("Dead", "Alive")),
        ("Alive,1\r\nDead,0", ("Dead", "Alive")),
        ("label,number\nAlive, 1\nDead, 0\n", ("Dead", "Alive")),
        ("name;id\nDead;0\n", ("Dead",)),
        ('"Dead, fallen",0\nAlive\t1\n', ("Dead, fallen", "Alive")),
        ("Dead\nAlive\n", ("Dead", "Alive")),
        ("Quercus, dead\nPinus\n", ("Quercus, dead", "Pinus")),
    ],
)
def test_a_file_of_classes_has_names_or_names_with_numbers(tmp_path: Path, text: str, names: tuple[str, ...]) -> None:
    (tmp_path / "classes.csv").write_text(text, "utf-8")
    assert parse_classes(tmp_path / "classes.csv") == names
    assert parse_classes(str(tmp_path / "classes.csv")) == names


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Dead,0\nAlive,0\n", "line 2: 'Dead' and 'Alive' have the number 0"),
        ("Dead,0\nAlive,2\n", "no class has the number 1, and 'Alive' has 2"),
        ("Dead,1\nAlive,2\n", "no class has the number 0"),
        ("Dead,0\nAlive\n", "line 2: 'Alive' has no number"),
    ],
)
def test_numbers_of_classes_that_leave_the_order_open_are_an_error(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "classes.csv").write_text(text, "utf-8")
    with pytest.raises(DataError, match=words):
        parse_classes(tmp_path / "classes.csv")


def test_a_missing_file_of_classes_is_not_taken_for_a_class() -> None:
    with pytest.raises(DataError, match=r"missing\.csv: cannot be read"):
        parse_classes("missing.csv")


def test_a_task_takes_its_classes_from_such_a_file(tmp_path: Path) -> None:
    (tmp_path / "classes.csv").write_text("Dead,0\nAlive,1\n", "utf-8")
    assert ps.Detection(str(tmp_path / "classes.csv")).classes == ("Dead", "Alive")
    assert ps.Classification(tmp_path / "classes.csv").classes == ("Dead", "Alive")


@pytest.mark.parametrize("classes", [{"Dead": 1, "Alive": 0}, {1: "Dead", 0: "Alive"}], ids=["by name", "by number"])
def test_a_dict_of_classes_gives_their_order_by_number(classes: dict[Any, Any]) -> None:
    assert parse_classes(classes) == ("Alive", "Dead")
    assert ps.Detection(classes).classes == ("Alive", "Dead")
    assert ps.Classification(classes).classes == ("Alive", "Dead")


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        ({"Dead": 1, "Alive": 2}, "0, 1, 2 …, each once"),
        ({"Dead": 0, "Alive": 0}, "0, 1, 2 …, each once"),
        ({0: "Dead", 2: "Alive"}, "0, 1, 2 …, each once"),
        ({"Dead": "x", "Alive": "y"}, "names with numbers"),
        ({"Dead": True, "Alive": False}, "names with numbers"),
        ({0: 1, 1: 0}, "names with numbers"),
        ({0: "Dead", 1: "Dead"}, "more than once"),
        ({0: "Dead", 1: ""}, "names with numbers"),
        ({}, "names no class"),
        ({"Dead", "Alive"}, "a set has no order"),
    ],
)
def test_classes_whose_order_stays_open_are_refused(classes: Any, words: str) -> None:
    with pytest.raises(ps.OptionError, match=words):
        parse_classes(classes)
    with pytest.raises(ps.OptionError):
        ps.Detection(classes)
