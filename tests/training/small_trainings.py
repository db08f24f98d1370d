"""Trainings of a second, for tests."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.callbacks import Callback

import penstock as ps
from training.tiny_task import Shades, Tiny

OPTIONS: dict[str, Any] = {
    "epochs": 2,
    "batch_size": 8,
    "learning_rate": 0.01,
    "progress": False,
    "workers": 1,
    "logger": False,
}


def trained(folder: str | Path, task: Any = None, data: Any = None, **options: Any) -> ps.Run:
    """A Run of a few steps."""
    return ps.train(task or Tiny(), data or Shades(50), folder=folder, **{**OPTIONS, **options})


def weights_of(run: ps.Run, which: str = "last") -> dict[str, torch.Tensor]:
    """The weights in a checkpoint of a Run, read as an untrusted file is."""
    loaded = torch.load(run.checkpoint(which), weights_only=True)  # type: ignore[arg-type]
    return dict(loaded["state_dict"])


def same_weights(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


class InterruptAt(Callback):
    """Ctrl-C during a batch of an epoch, as often as `times` says."""

    def __init__(self, epoch: int, batch: int, times: int = 1) -> None:
        self.epoch, self.batch, self.times = epoch, batch, times

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_number: int) -> None:
        if (trainer.current_epoch, batch_number) == (self.epoch, self.batch):
            for _ in range(self.times):
                os.kill(os.getpid(), signal.SIGINT)
