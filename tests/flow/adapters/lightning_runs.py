"""A tiny network under a real Lightning Trainer that writes down which samples it was trained with."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from tests.flow.small_flows import numbers

SAMPLES, BATCH = 23, 4


def train_loader(endless: bool = False) -> Any:
    flow = numbers(SAMPLES).shuffle()
    return (flow.repeat() if endless else flow).batch(BATCH).to_torch()


class Noting(lightning.LightningModule):
    """One weight; `seen` has the samples of every training step, `validated` those of every validation step."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.seen: list[list[int]] = []
        self.validated: list[list[int]] = []

    def training_step(self, batch: dict[str, Any], batch_idx: int) -> Any:
        self.seen.append(batch["index"].tolist())
        return (self.weight * batch["value"].float()).mean()

    def validation_step(self, batch: dict[str, Any], batch_idx: int) -> None:
        self.validated.append(batch["index"].tolist())

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.01)


class StopAfter(Callback):
    """Ends the run as a crash would, when the step after these begins: checkpoints are written before."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def on_train_batch_start(self, trainer: Any, *rest: Any) -> None:
        if trainer.global_step == self.steps:
            raise Stopped


class Stopped(Exception):  # noqa: N818 - no error, but the end of a run
    pass


def run(
    folder: Path,
    *,
    loader: Any = None,
    validation: Any = None,
    resume: Path | None = None,
    callbacks: Any = (),
    **options: Any,
) -> Noting:
    """Train; with `resume` from a checkpoint."""
    module = Noting()
    trainer = lightning.Trainer(
        default_root_dir=folder,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=any(isinstance(one, ModelCheckpoint) for one in callbacks),
        callbacks=list(callbacks),
        **options,
    )
    with contextlib.suppress(Stopped):
        trainer.fit(module, loader if loader is not None else train_loader(), validation, ckpt_path=resume)
    return module


if __name__ == "__main__":  # a new process: python -m tests.flow.adapters.lightning_runs folder checkpoint options
    options = json.loads(sys.argv[3])
    print(json.dumps(run(Path(sys.argv[1]), resume=Path(sys.argv[2]), **options).seen))
