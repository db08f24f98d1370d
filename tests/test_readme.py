"""Every example of the README works, in its order."""

from __future__ import annotations

from pathlib import Path

import pytest

from page_examples import examples_of, run_page
from test_start_pages import SHORT, flights, mice, photos

README = Path(__file__).resolve().parents[1] / "README.md"
# What takes a minute or an hour, made small; the demonstration has a test of its own.
SMALLER = {
    "\npenstock demo\n": "\npenstock demo --help\n",
    "run.folder=runs/trees": f"run.folder=runs/trees {SHORT}",
    'size="128x128"': 'size="32x32"',
    'size="fast"': 'size="tiny", frames=3, flow_epochs=1, sequence_epochs=1, window_frames=8',
    "epochs=20": "epochs=1, batch_size=8, progress=False, logger=False",
    "penstock doctor photos.pack": "penstock doctor photos.pack --seconds 2 --batch-size 8",
}


@pytest.mark.filterwarnings("ignore")  # of Lightning, which warns of everything that is small
def test_the_readme_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lightning", reason="Lightning is not installed; pip install 'penstock[train]'")
    for make in (flights, mice, photos):
        make(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert not run_page(README, SMALLER)
    for made in ("trees.html", "crowns_found.gpkg", "new_mouse.csv", "photos.pack"):
        assert (tmp_path / made).exists()


def test_examples_of_the_readme_are_short() -> None:
    for example in examples_of(README.read_text(encoding="utf-8")):
        assert len(example.code.splitlines()) <= 10, example.line
