"""Class names as people write them down."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from penstock.errors import DataError
from penstock.sources.reading import parse_classes


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
