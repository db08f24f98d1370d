"""Work that was interrupted goes on where it stopped, and gives what it would have given."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("torchvision")
pytest.importorskip("rasterio")
pytest.importorskip("geopandas")

import penstock as ps  # noqa: E402
from commands import run_here  # noqa: E402
from penstock.prediction.boxes.finding_boxes import Asker  # noqa: E402
from penstock.prediction.boxes.journals import BLOCK_SECONDS, Journal  # noqa: E402
from penstock.prediction.boxes.mosaics import SceneBoxes  # noqa: E402
from scene_making import scene  # noqa: E402

UNDER_WAY = 4  # with two lanes: in each one window that is looked at, and one that waits
KILLED = Path(__file__).parents[1] / "killed_prediction.py"


def boxes(count: int) -> SceneBoxes:
    corners = np.arange(count * 4, dtype=np.float64).reshape(count, 4)
    return SceneBoxes(corners, np.zeros(count, np.int64), np.full(count, 0.5))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The windows that a network is asked about from now on."""
    looked: list[int] = []
    answers = Asker._answers

    def counting(self: Any, one: Any, group: Any) -> Any:
        looked.extend(window.number for window in group)
        return answers(self, one, group)

    monkeypatch.setattr(Asker, "_answers", counting)
    return looked


@pytest.mark.slow
def test_a_killed_prediction_goes_on_with_the_same_command(
    crowns_run: ps.Run, raster: Callable[..., Path], tmp_path: Path, counted: list[int]
) -> None:
    path, output = raster(scene(3, 400, most=40)[0]), tmp_path / "crowns.geojson"
    whole = ps.predict(crowns_run, path, tile_px=128)
    total = len(counted)
    command = [sys.executable, KILLED, crowns_run.folder, path, output, "7"]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    partial = tmp_path / "crowns.geojson.partial"
    assert not output.exists()
    kept = len(list(partial.glob("block-*.npz")))
    assert 7 - UNDER_WAY <= kept <= 7
    counted.clear()
    done = run_here("predict", crowns_run.folder, path, "-o", output, "--tile-px", "128")
    assert done.exit_code == 0, done.err
    assert len(counted) == total - kept
    assert not partial.exists()
    uninterrupted = tmp_path / "whole.geojson"
    whole.save(uninterrupted)  # type: ignore[union-attr,operator]
    assert output.read_text().replace("crowns", "whole") == uninterrupted.read_text().replace("crowns", "whole")


@pytest.mark.slow
def test_other_work_under_the_same_name_begins_anew(
    crowns_run: ps.Run, raster: Callable[..., Path], tmp_path: Path, counted: list[int]
) -> None:
    path, output = raster(scene(3, 300, most=12)[0]), tmp_path / "crowns.csv"
    command = [sys.executable, KILLED, crowns_run.folder, path, output, "2"]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    ps.predict(crowns_run, path, output=output, tile_px=128, score_threshold=0.5)
    every = len(counted)
    counted.clear()
    ps.predict(crowns_run, path, tile_px=128)
    assert every == len(counted)


def test_blocks_that_are_damaged_are_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "boxes.csv.partial"
    seconds = iter(np.arange(0, 1000, BLOCK_SECONDS))
    journal = Journal(folder, clock=lambda: float(next(seconds)))
    journal.begin({"model": "one"})
    for number in range(3):
        journal.add((4, number), boxes(number))
    (folder / "block-000001.npz").write_bytes(b"PK")
    again = Journal(folder)
    again.begin({"model": "one"})
    assert set(again.finished[4]) == {0, 2}
    np.testing.assert_array_equal(again.finished[4][2].boxes, boxes(2).boxes)
    assert len(again.finished[4][0].scores) == 0
    other = Journal(folder)
    other.begin({"model": "another"})
    assert not other.finished
    assert [path.name for path in folder.iterdir()] == ["plan.json"]


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "boxes.csv.partial"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ps.OptionError, match="not ours"):
        Journal(folder).begin({})
    assert (folder / "notes.txt").read_text() == "mine"
