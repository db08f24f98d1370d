"""What the page about frameworks shows works, as far as they are installed."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from page_examples import examples_of, run_page
from picture_making import write_picture

PAGE = Path(__file__).resolve().parents[1] / "docs" / "frameworks.md"


def pets(folder: Path) -> None:
    """A pack of twenty pictures of two kinds."""
    for number in range(20):
        write_picture(folder / "pets" / ("cat", "dog")[number % 2] / f"{number}.jpg", 80, 70, seed=number)
    ps.pack(ps.Images(folder / "pets"), folder / "pets.pack", split="train=0.8,val=0.2")


@pytest.mark.filterwarnings("ignore")  # of frameworks, each with its own habits
def test_the_examples_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lightning", reason="Lightning is not installed; pip install 'penstock[train]'")
    pets(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    left_out = run_page(PAGE)
    assert {example.missing for example in left_out} <= {"tensorflow", "jax"}
    assert (tmp_path / "classifier.ckpt").exists()


def test_every_way_out_is_on_the_page() -> None:
    code = "".join(example.code for example in examples_of(PAGE.read_text(encoding="utf-8")))
    assert all(f".{name}(" in code for name in vars(ps.Flow) if name.startswith("to_"))
