"""Code inside a file of weights never runs, whichever verb opens it."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import penstock as ps
from penstock.tasks.weights import read_torch
from shape_making import SHAPES, Shapes


class Evil:
    """Unpickled, it makes a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.marker),)


def poison(path: Path, marker: Path, kind: str) -> None:
    content: Any = torch.load(path, weights_only=True) if path.exists() else {}
    content = {**content, "more": Evil(marker)}
    if kind == "torch":
        torch.save(content, path)
    else:
        path.write_bytes(pickle.dumps(content, protocol=2))


@pytest.mark.parametrize("kind", ["torch", "pickle"])
@pytest.mark.parametrize("ending", [".ckpt", ".pt", ".pth", ".pl"])
def test_a_file_of_weights_runs_nothing_and_says_so_without_bad_advice(tmp_path: Path, kind: str, ending: str) -> None:
    path, marker = tmp_path / f"x{ending}", tmp_path / "marker"
    poison(path, marker, kind)
    with pytest.raises(ps.PenstockError) as caught:
        ps.load(path)
    assert not marker.exists()
    assert "weights_only" not in str(caught.value)
    with pytest.raises(ps.DataError, match="which Penstock does not load|no file of weights"):
        read_torch(path)
    assert not marker.exists()


@pytest.mark.parametrize("verb", ["predict", "evaluate", "resume", "report"])
@pytest.mark.parametrize("kind", ["torch", "pickle"])
def test_checkpoints_of_a_run_run_nothing(shapes_run: ps.Run, tmp_path: Path, verb: str, kind: str) -> None:
    folder, marker = tmp_path / "run", tmp_path / "marker"
    shutil.copytree(shapes_run.folder, folder)
    for path in (folder / "checkpoints").glob("*.ckpt"):
        poison(path, marker, kind)
    if verb == "report":
        ps.report(folder, output=tmp_path / "r.html")
    else:
        with pytest.raises(ps.PenstockError) as caught:
            if verb == "predict":
                ps.predict(folder, Shapes(4))
            elif verb == "evaluate":
                ps.evaluate(folder, Shapes(4))
            else:
                task = ps.Classification(SHAPES, backbone="tiny", size=32)
                options: dict[str, Any] = {"batch_size": 16, "progress": False, "logger": False, "workers": 0}
                ps.train(task, (Shapes(48), Shapes(24, first=1000)), epochs=2, folder=folder, resume="must", **options)
        assert "weights_only" not in str(caught.value)
    assert not marker.exists()
