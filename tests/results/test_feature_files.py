"""Features that grow on the disk: nothing that was noted is lost, nothing half is read."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from penstock.errors import OptionError, Problem
from penstock.results.feature_files import COMMIT_FRAMES, Column, FeatureFile

COLUMNS = {"features": Column(4), "times_s": Column(1, "float64")}


def blocks(start: int, count: int) -> dict[str, np.ndarray]:
    rows = np.arange(start, start + count, dtype=np.float64)[:, None]
    return {"features": rows + np.zeros(4), "times_s": rows / 30}


def reopened(target: Path, made_by: object = 1, *, fresh: bool = False) -> FeatureFile:
    return FeatureFile(target, COLUMNS, {"model": made_by}, fresh=fresh)


def test_another_process_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    target, bad = tmp_path / "m.h5", Problem("m.mp4", 3, "does not decode", "Re-encode it")
    with reopened(target) as growing:
        growing.append(blocks(0, 10), [bad])
    with reopened(target) as growing:
        assert (growing.frames, growing.problems) == (10, [bad])
        growing.append(blocks(10, 5))
        assert np.array_equal(growing.column("features"), blocks(0, 15)["features"])
        assert growing.column("times_s").dtype == np.float64
    with reopened(target) as growing:
        assert (growing.frames, growing.problems) == (15, [bad])


def test_another_model_begins_anew_and_so_does_fresh(tmp_path: Path) -> None:
    target = tmp_path / "m.h5"
    for made_by, fresh in ((1, False), (2, False), (2, True)):
        with reopened(target, made_by, fresh=fresh) as growing:
            assert growing.frames == 0
            growing.append(blocks(0, 3))


def test_rows_that_were_not_noted_are_cut_off(tmp_path: Path) -> None:
    target = tmp_path / "m.h5"
    with reopened(target) as growing:
        growing.append(blocks(0, 7))
    with (growing.folder / "features.bin").open("ab") as file:
        file.write(b"half a row")
    with (growing.folder / "frames.jsonl").open("ab") as file:
        file.write(b'{"frames": 9, "pro')
    with reopened(target) as growing:
        assert growing.frames == 7
        growing.append(blocks(7, 2))
        assert np.array_equal(growing.column("features"), blocks(0, 9)["features"])
    with reopened(target) as growing:
        assert growing.frames == 9


@pytest.mark.parametrize("damage", ["features.bin", "frames.jsonl"])
def test_a_damaged_folder_begins_anew(tmp_path: Path, damage: str) -> None:
    target = tmp_path / "m.h5"
    with reopened(target) as growing:
        growing.append(blocks(0, 7))
    (growing.folder / damage).write_bytes(b"lost\n")
    with reopened(target) as growing:
        assert growing.frames == 0
        growing.append(blocks(0, 2))
        assert np.array_equal(growing.column("features"), blocks(0, 2)["features"])


def test_a_killed_process_loses_less_than_one_commit(tmp_path: Path) -> None:
    target = tmp_path / "m.h5"
    code = f"""
import os, signal, numpy as np
from pathlib import Path
from penstock.results.feature_files import Column, FeatureFile
growing = FeatureFile(Path({str(target)!r}), {{"features": Column(4), "times_s": Column(1, "float64")}}, {{"model": 1}})
for start in range(0, {2 * COMMIT_FRAMES + 90}, 10):
    rows = np.arange(start, start + 10, dtype=np.float64)[:, None]
    growing.append({{"features": rows + np.zeros(4), "times_s": rows / 30}})
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run([sys.executable, "-c", code], env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert ended.returncode == -signal.SIGKILL
    with reopened(target) as growing:
        assert 2 * COMMIT_FRAMES <= growing.frames <= 2 * COMMIT_FRAMES + 90
        assert np.array_equal(growing.column("features"), blocks(0, growing.frames)["features"])


def test_blocks_that_do_not_fit_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with reopened(tmp_path / "m.h5") as growing:
        wrong = blocks(0, 3)
        with pytest.raises(OptionError, match="expected"):
            growing.append({"features": wrong["features"]})
        with pytest.raises(OptionError, match="equally many rows"):
            growing.append({**wrong, "times_s": wrong["times_s"][:2]})
        with pytest.raises(OptionError, match="equally many rows"):
            growing.append({**wrong, "features": wrong["features"][:, :2]})
        assert growing.frames == 0
        assert growing.column("features").shape == (0, 4)
