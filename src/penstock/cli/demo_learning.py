"""The part of the demonstration that learns: a tiny network, a few seconds, a Run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click

import penstock as ps

# Enough for shapes on a plain ground, on any machine.
RECIPE = """\
data:
  path: {pack}
task:
  kind: classification
  size: 64
  crop_scale: [0.7, 1]
  colour: 0
model:
  backbone: tiny
train:
  epochs: 12
  batch_size: 16
  learning_rate: 5e-3
run:
  folder: {folder}
  progress: off
"""


def learn_shapes(home: Path) -> None:
    """Train on the pack of shapes, answer for a few of its pictures, and write a report."""
    recipe, folder = home / "shapes.yaml", home / "runs" / "shapes"
    recipe.write_text(RECIPE.format(pack=home / "shapes.pack", folder=folder), encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    chosen = ps.Recipe.read(recipe)
    run = ps.train(chosen.task, chosen.data.path, **chosen.options())
    click.echo(f"{run.folder}: accuracy {run.scores()['accuracy']:.2f} on pictures that it was not trained on")
    answers: Any = ps.predict(run, [str(path) for path in sorted((home / "raw" / "shapes").rglob("*_00?.jpg"))[::3]])
    click.echo(answers[["image_path", "label", "score"]].to_string(index=False))
    click.echo(f"a page on it: {ps.report(run)}")
