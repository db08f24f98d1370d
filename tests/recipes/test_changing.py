"""Values are changed where they stand; nothing else of a recipe moves."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from penstock.recipes.changing import change_recipe, changed_text

BLOCK = """\
# my pets
data:
  path: pets.pack   # packed on Monday

feed:
    # two, because the laptop gets warm
    workers: 2  # cores
    prefetch:
train: {epochs: 3}
"""


def test_comments_and_other_lines_stay() -> None:
    found = changed_text(BLOCK, "feed", {"workers": "auto", "cache": "memory"})
    assert found == BLOCK.replace("workers: 2", "cache: memory\n    workers: auto")


def test_a_comment_stays_in_its_column_where_there_is_room() -> None:
    text = "feed:\n  cache: none          # or memory\n"
    assert changed_text(text, "feed", {"cache": "memory"}) == "feed:\n  cache: memory        # or memory\n"


def test_a_key_without_a_value_gets_one() -> None:
    assert "prefetch: auto\ntrain" in changed_text(BLOCK, "feed", {"prefetch": "auto"})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "data: {path: a}",
        "data: {path: a}\n",
        "feed:\n",
        "feed:",
        "feed: {}",
        "feed: {workers: 2}\n",
        "feed: {workers: 2}",
    ],
)
def test_a_section_of_any_form_or_none_is_changed(text: str) -> None:
    found = yaml.safe_load(changed_text(text, "feed", {"cache": "memory", "workers": "auto"}))
    assert found["feed"] == {"cache": "memory", "workers": "auto"}
    assert ("data" in text) == ("data" in found)


def test_what_was_before_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "pets.yaml"
    file.write_text(BLOCK)
    kept = change_recipe(file, "feed", {"executor": "process"})
    assert kept.name == "pets.yaml.before" and kept.read_text() == BLOCK
    assert yaml.safe_load(file.read_text())["feed"]["executor"] == "process"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["pets.yaml", "pets.yaml.before"]
