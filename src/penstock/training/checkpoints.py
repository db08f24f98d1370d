"""Checkpoints: written whole or not at all, without a pickle, the best and the last.

on_train_batch_end      last.ckpt, every few minutes and when training is interrupted
on_train_epoch_end      last.ckpt, and best.ckpt if the score was never better (or best-1.ckpt … best-k.ckpt)
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.callbacks import Checkpoint
from lightning.pytorch.plugins.io import TorchCheckpointIO

from penstock.storage.whole_files import whole_file
from penstock.tasks.task import Goal
from penstock.tasks.weights import read_torch

SAVE_SECONDS = 300.0  # of work that a killed process may lose
MEASURED_STEPS = 10  # after which it is decided how many steps that is


class WholeCheckpoints(TorchCheckpointIO):
    """Files that appear under their name when they are complete, and hold tensors and plain values alone."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as partial, partial.open("wb") as file:
            target = _Target(file)
            try:
                torch.save(checkpoint, target)
            except RuntimeError as error:  # torch has no word for a full disk
                raise target.error or error from error

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        loaded: dict[str, Any] = read_torch(path, map_location or "cpu")
        return loaded


class _Target:
    """A file that remembers what the system refused."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.error: OSError | None = None

    def write(self, content: Any) -> int:
        try:
            written: int = self._file.write(content)
        except OSError as error:
            self.error = error
            raise
        return written

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError as error:
            self.error = error
            raise


class KeepCheckpoints(Checkpoint):
    """Keeps the last state and the best ones."""

    def __init__(
        self,
        folder: str | Path,
        goal: Goal,
        *,
        save_top_k: int = 1,
        every_seconds: float = SAVE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder, self.goal, self.save_top_k = Path(folder), goal, save_top_k
        self.best: list[float] = []  # scores of best-1, best-2 …
        self._every_seconds, self._clock = every_seconds, clock
        self._every_steps: int | None = None
        self._began, self._seen = 0.0, 0

    @property
    def last(self) -> Path:
        return self.folder / "last.ckpt"

    def on_train_start(self, trainer: Any, module: Any) -> None:
        self._began, self._seen, self._every_steps = self._clock(), 0, None

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_number: int) -> None:
        self._seen += 1
        if self._seen == MEASURED_STEPS:
            self._decide_steps(trainer)
        if self._every_steps and self._seen >= self._every_steps and may_stop_here(trainer, batch_number):
            self._seen = MEASURED_STEPS  # counted from here on, without another decision
            trainer.save_checkpoint(self.last)

    def _decide_steps(self, trainer: Any) -> None:
        """How many steps are between two checkpoints: the same on all ranks, whose clocks differ."""
        seconds = max(self._clock() - self._began, 1e-6) / MEASURED_STEPS
        steps = MEASURED_STEPS + math.ceil(self._every_seconds / seconds)
        self._every_steps = trainer.strategy.broadcast(steps)

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        if trainer.fast_dev_run:
            return
        score = _score(trainer, self.goal)
        place = self._place(score)
        if place is not None:
            self.best.insert(place, score)
            self._make_room(place, trainer)
        # First the last: a best of this epoch beside a last of the one before could not be gone on from.
        trainer.save_checkpoint(self.last)
        if place is not None:
            trainer.save_checkpoint(self._path(place))

    def _place(self, score: float) -> int | None:
        """Where a score stands among the best; equal ones keep their place."""
        if math.isnan(score) or not self.save_top_k:
            return None
        sign = 1 if self.goal.larger_is_better else -1
        place = sum(sign * one >= sign * score for one in self.best)
        return place if place < self.save_top_k else None

    def _make_room(self, place: int, trainer: Any) -> None:
        """Those behind a place move one down; the last of them is overwritten."""
        for number in reversed(range(place, min(len(self.best) - 1, self.save_top_k - 1))):
            if trainer.is_global_zero and self._path(number).exists():
                self._path(number).replace(self._path(number + 1))
        del self.best[self.save_top_k :]

    def _path(self, place: int) -> Path:
        return self.folder / ("best.ckpt" if self.save_top_k == 1 else f"best-{place + 1}.ckpt")

    def state_dict(self) -> dict[str, Any]:
        return {"best": list(self.best)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best = list(state_dict["best"])
        if self.best and self.save_top_k == 1 and self.last.exists() and not self._path(0).exists():
            # The process ended between the two files of an epoch whose score was the best: its last is that best.
            with whole_file(self._path(0)) as partial:
                shutil.copyfile(self.last, partial)


def may_stop_here(trainer: Any, batch_number: int) -> bool:
    """Whether a checkpoint behind this batch loses nothing: no gradient waits for its step, no validation is due."""
    is_whole = (batch_number + 1) % trainer.accumulate_grad_batches == 0
    return is_whole and not trainer.is_last_batch


def _score(trainer: Any, goal: Goal) -> float:
    return float(trainer.callback_metrics.get(goal.name, math.nan))
