"""Every task on one of two ranks: `python -m torch.distributed.run task_ranks.py FOLDER`, or without it on one.

FOLDER/NAME            the Run that ps.train left
FOLDER/NAME.json       what a Trainer of the user's own logged, and what it says of weights that are the same everywhere
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

import lightning.pytorch as lightning

import penstock as ps
from scene_making import CROWNS, Scenes
from shape_making import SHAPES, Shapes
from training.test_staged import TASK, videos

OPTIONS: dict[str, Any] = {"batch_size": 8, "learning_rate": 1e-3, "workers": 0, "schedule": "constant"}
EPOCHS = 2
# The last batches are dealt unevenly, and one rank gets nothing of the last one of validation.
TASKS: dict[str, Any] = {
    "classification": lambda: (ps.Classification(SHAPES, backbone="tiny", size=32), (Shapes(43), Shapes(17, 100))),
    "detection": lambda: (
        ps.Detection(CROWNS, backbone="tiny", anchor_scale=2.83, levels=3, norm="frozen"),
        (Scenes(19, size=64), Scenes(9, 100, size=64)),
    ),
    "behaviour": lambda: (TASK, (videos("ab"), videos("c"))),
}
OWN_LOOPS = {
    "classification": lambda task: task,
    "detection": lambda task: task,
    "flow": lambda task: task.stage("flow"),
    "frames": lambda task: task.stage("frames"),
}


def world_size() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def devices() -> dict[str, Any]:
    several = {"devices": world_size(), "strategy": "ddp"}
    return {"accelerator": "cpu", **(several if world_size() > 1 else {"devices": 1})}


def train(folder: Path, name: str) -> None:
    task, data = TASKS[name]()
    ps.train(task, data, folder=folder / name, epochs=EPOCHS, logger=False, progress=False, **OPTIONS, **devices())


def fit(folder: Path, name: str) -> None:
    """With a Trainer of the user's own, and its sanity check."""
    whole, data = TASKS.get(name, TASKS["behaviour"])()
    module = ps.module_for(OWN_LOOPS[name](whole), data, **OPTIONS)
    trainer = lightning.Trainer(
        max_epochs=EPOCHS, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, **devices(),
    )  # fmt: skip
    before = trainer.validate(module, verbose=False)[0]
    trainer.fit(module)
    after = {key: float(value) for key, value in trainer.callback_metrics.items()}
    if trainer.is_global_zero:
        (folder / f"{name}.json").write_text(json.dumps({"before": before, "after": after}))


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    for name in TASKS:
        train(folder, name)
        train(folder, name)  # nothing is left to do, and every rank must know it
    for name in OWN_LOOPS:
        fit(folder, name)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
