"""The notebooks run from the first cell to the last, on the small data that they make themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
# What takes minutes, made small: it is tried that everything runs, not that it learns.
SMALLER = {
    "engineer": {"epochs = 5": "epochs = 1", "range(120)": "range(24)"},
    "ecologist": {
        "epochs = 14": "epochs = 1",
        "write_flights(flights, 4)": "write_flights(flights, 2, 300)",
        "write_flights(new_flight.parent, 1, first=4)": "write_flights(new_flight.parent, 1, 300, first=4)",
    },
    "neuroscientist": {"= 300, 2, 3, 10": "= 60, 1, 1, 1"},
}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.filterwarnings("ignore")  # of Jupyter's libraries
@pytest.mark.parametrize("name", SMALLER)
def test_the_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed; pip install 'penstock[dev]'")
    nbformat = pytest.importorskip("nbformat")
    text = (NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8")
    for shown, run in SMALLER[name].items():
        assert shown in text, f"the notebook does not have {shown!r} any more"
        text = text.replace(shown, run)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.reads(text, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=1800, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()


def test_every_notebook_is_tried_and_kept_without_what_it_gave() -> None:
    nbformat = pytest.importorskip("nbformat")
    found = {path.stem: nbformat.read(path, as_version=4) for path in NOTEBOOKS.glob("*.ipynb")}
    assert set(found) == set(SMALLER)
    for notebook in found.values():
        assert not any(cell.get("outputs") for cell in notebook.cells)
