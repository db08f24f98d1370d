"""A training as one of two processes runs it: `python -m torch.distributed.run ranks.py FOLDER WAY`."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
torch.set_num_threads(1)

import lightning.pytorch as lightning  # noqa: E402

import penstock as ps  # noqa: E402
from training.tiny_task import Shades, Tiny  # noqa: E402

OPTIONS: dict[str, Any] = {"batch_size": 8, "learning_rate": 0.01, "workers": 0, "schedule": "constant"}
TRAIN, VAL = 43, 17  # the last batches are dealt unevenly, and one rank gets nothing of the last of validation


def main(folder: Path, way: str) -> None:
    task = Tiny(dropout=0.0, record=str(folder / "seen.txt"))
    data = (Shades(TRAIN), Shades(VAL, seed=1))
    if way == "train":
        options = {**OPTIONS, "epochs": 2, "devices": 2, "strategy": "ddp", "accelerator": "cpu", "progress": False}
        ps.train(task, data, folder=folder / "run", logger=False, **options)
        return
    module = ps.module_for(task, data, **OPTIONS)
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", devices=2, strategy="ddp", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
    )  # fmt: skip
    trainer.fit(module)
    torch.save(module.state_dict(), folder / f"weights.{os.environ.get('LOCAL_RANK', '0')}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]), sys.argv[2])
