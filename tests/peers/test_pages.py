"""What a page shows for a framework that the default environment lacks is run here, with the others of that page."""

from __future__ import annotations

from pathlib import Path

import pytest

from page_examples import run_page
from test_coming_from import FOLDER, pets

pytest.importorskip("tensorflow", reason="TensorFlow is not installed; make test-peers has it")
pytestmark = pytest.mark.filterwarnings("ignore")  # of TensorFlow's own


def test_everything_on_the_page_of_tf_data_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pets(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert run_page(FOLDER / "tf-data.md") == []
