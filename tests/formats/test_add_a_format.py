"""The format that docs/inside/add-a-format.md shows can be recognised, read and written, and resumes."""

from __future__ import annotations

import importlib
import sys
from contextlib import closing
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import penstock as ps
import penstock.formats
from exporting_trips import pets
from page_examples import examples_of
from penstock.formats import registry

PAGE = Path(__file__).resolve().parents[2] / "docs" / "inside" / "add-a-format.md"


@pytest.fixture
def cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of the page, where it belongs, and its line in the registry."""
    (code,) = [one.code for one in examples_of(PAGE.read_text(encoding="utf-8")) if one.code.startswith('"""Cards')]
    home = tmp_path / "more_formats"
    home.mkdir()
    (home / "cards.py").write_text(code + "\n", encoding="utf-8")
    monkeypatch.setattr(penstock.formats, "__path__", [*penstock.formats.__path__, str(home)])
    monkeypatch.delitem(sys.modules, "penstock.formats.cards", raising=False)
    made = importlib.import_module("penstock.formats.cards")
    monkeypatch.setattr(registry, "FORMATS", (*registry.FORMATS, made.CARDS))
    return made


def test_the_format_of_the_page_is_written_recognised_and_read(cards: ModuleType, tmp_path: Path) -> None:
    source = pets(tmp_path)
    written = ps.export(source, tmp_path / "out", to="cards")
    assert written.splits == {"train": 6, "val": 6} and written.left_out == ()
    again = ps.open(tmp_path / "out")
    assert type(again) is cards.Cards and again.classes == source.classes
    expected = {sample["image"].tobytes(): sample["label"] for sample in source}
    assert {sample["image"].tobytes(): sample["label"] for sample in again} == expected
    assert type(ps.open(tmp_path / "out" / "train-00000.cards")) is cards.Cards


def test_the_format_of_the_page_goes_through_a_flow_and_into_a_pack(cards: ModuleType, tmp_path: Path) -> None:
    ps.export(pets(tmp_path), tmp_path / "out", to="cards")
    again = ps.open(tmp_path / "out")
    with closing(ps.Flow(again, seed=0).shuffle().batch(4)) as flow:
        assert sorted(np.concatenate([batch["label"] for batch in flow]).tolist()) == [0] * 6 + [1] * 6
    assert len(ps.pack(again, tmp_path / "again.pack")) == 12


def test_a_damaged_file_of_the_page_is_named(cards: ModuleType, tmp_path: Path) -> None:
    ps.export(pets(tmp_path), tmp_path / "out", to="cards")
    path = tmp_path / "out" / "val-00000.cards"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ps.DataError, match="val-00000.cards.*cut short"):
        ps.open(tmp_path / "out")


def test_formats_have_one_name_each_and_their_readers_and_writers_are_there() -> None:
    from penstock.formats.format import load

    names = [one.name for one in registry.FORMATS]
    assert len(set(names)) == len(names)
    for one in registry.FORMATS:
        assert callable(load(one.reader)), one.name
        assert not one.writer or callable(load(one.writer)), one.name
        assert bool(one.writer) == (one.open_export is not None), one.name
