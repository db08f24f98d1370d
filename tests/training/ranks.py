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
from training.tiny_task import SIDE, Shades, Tiny  # noqa: E402

OPTIONS: dict[str, Any] = {"batch_size": 8, "learning_rate": 0.01, "workers": 0, "schedule": "constant"}
TRAIN, VAL = 43, 17  # the last batches are dealt unevenly, and one rank gets nothing of the last of validation


class Plain(Tiny):
    """Nothing in the network depends on what else is in its batch, so that ranks can be compared to the last digits."""

    def network(self) -> torch.nn.Module:
        return torch.nn.Sequential(
            torch.nn.Flatten(), Levels(), torch.nn.Linear(3 * SIDE * SIDE, 1), torch.nn.Flatten(0)
        )


class Levels(torch.nn.Module):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.float() / 255


# Samples, batches whose gradients are added up, and batches on one rank: those that two ranks take too.
UNEVEN = [(43, 1, None), (43, 4, None), (17, 3, 2)]


def fitted_weights(case: int, count: int) -> dict[str, torch.Tensor]:
    """The weights after an epoch of plain gradient descent on so many ranks."""
    samples, accumulate, limit = UNEVEN[case]
    accumulate = limit if limit is not None and count == 1 else accumulate
    options = {**OPTIONS, "optimizer": "sgd", "momentum": 0.0, "accumulate": accumulate}
    module = ps.module_for(Plain(dropout=0.0), (Shades(samples), None), **options)
    several = {"devices": count, "strategy": "ddp"} if count > 1 else {"devices": 1, "limit_train_batches": limit}
    trainer = lightning.Trainer(
        max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, limit_val_batches=0, accumulate_grad_batches=accumulate, **several,
    )  # fmt: skip
    trainer.fit(module)
    return dict(module.state_dict())


def main(folder: Path, way: str) -> None:
    if way == "uneven":
        for case in range(len(UNEVEN)):
            weights = fitted_weights(case, 2)
            if os.environ.get("RANK") == "0":
                torch.save(weights, folder / f"{case}.pt")
        return
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
