"""From photos to a model to answers, by the commands of the first page, with the installed program."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import penstock as ps
from commands import run_installed
from penstock.cli.demo_data import SHAPES, write_shapes

# Threads of a tiny network would only wait for each other.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}


@pytest.mark.slow
def test_from_class_folders_to_a_table_of_answers(tmp_path: Path) -> None:
    write_shapes(tmp_path / "shapes", count=180)
    new = write_shapes(tmp_path / "new", count=210)
    for number in range(180):  # those that are new to the network
        name = SHAPES[number % 3]
        (new / name / f"{name}_{number:03d}.jpg").unlink()

    def penstock(*command: object) -> str:
        done = run_installed(*command, folder=tmp_path, **ONE_THREAD)
        assert done.exit_code == 0, done.err
        return done.out

    penstock("pack", "images", "shapes", "-o", "shapes.pack")
    (tmp_path / "shapes.yaml").write_text(penstock("recipe", "images"))
    keys = ("data.path=shapes.pack", "run.folder=runs/shapes", "model.backbone=tiny", "task.size=64", "task.colour=0")
    speed = ("train.epochs=15", "train.batch_size=16", "train.learning_rate=5e-3", "task.crop_scale=[0.7, 1]")
    penstock("train", "shapes.yaml", *keys, *speed, "--no-progress")
    assert "accuracy" in penstock("evaluate", "runs/shapes", "--split", "val")
    penstock("predict", "runs/shapes", "new", "-o", "labels.csv")
    penstock("report", "runs/shapes", "-o", "shapes.html")

    rows = pd.read_csv(tmp_path / "labels.csv")
    truth = rows["image_path"].str.split("/").str[-2]
    assert len(rows) == 30 and (rows["label"] == truth).mean() >= 0.8
    assert ps.Run(tmp_path / "runs" / "shapes").scores()["accuracy"] >= 0.8
    assert "<html" in (tmp_path / "shapes.html").read_text(encoding="utf-8")
