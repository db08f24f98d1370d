"""How a training ends early: Ctrl-C after a finished step, and a loss that is no longer a number."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from lightning.pytorch.callbacks import Callback

from penstock.errors import TrainingError
from penstock.samples import Store
from penstock.training.checkpoints import may_stop_here

if TYPE_CHECKING:
    from penstock.tasks.task import Batch
    from penstock.training.module import Module


# Ctrl-C: the step is finished, a checkpoint is written, and then training ends. A second Ctrl-C ends it at once.


STDERR = 2
STOPPING = (
    b"\npenstock: stopping after this step, or after the validation that is running; Ctrl-C again stops at once.\n"
)


class Interrupted(Exception):  # noqa: N818 - not an error: the user asked for it
    """Training was stopped by the user, and its state is on the disk."""


class Stopping(Callback):
    """Ends training between two steps when it was asked to; `last` is where the state goes, None for nowhere."""

    def __init__(self, last: Path | None) -> None:
        self._last = last
        self.asked, self._is_saved = False, False

    def ask(self) -> None:
        """Stop as soon as nothing is lost by it."""
        self.asked = True

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_number: int) -> None:
        if self._is_asked(trainer) and may_stop_here(trainer, batch_number):
            if self._last is not None:
                trainer.save_checkpoint(self._last)
            self._is_saved = True

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_number: int) -> None:
        # Not at the end of the step: Lightning logs its metrics after the callbacks.
        if self._is_saved:
            raise Interrupted

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        # The checkpoint of the epoch before was written at its end.
        if self._is_asked(trainer):
            raise Interrupted

    def _is_asked(self, trainer: Any) -> bool:
        """All ranks stop at the same step, as soon as one was asked."""
        asked = self.asked or trainer.received_sigterm
        if trainer.world_size == 1:
            return bool(asked)
        return bool(trainer.strategy.reduce_boolean_decision(asked, all=False))

    @contextmanager
    def on_signal(self) -> Iterator[None]:
        """While this lasts, the first Ctrl-C asks, and the second interrupts. Signals reach the main thread alone."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.getsignal(signal.SIGINT)

        def handle(number: int, frame: FrameType | None) -> None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.write(STDERR, STOPPING)  # print may be what was interrupted
            self.ask()

        signal.signal(signal.SIGINT, handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)  # Lightning leaves it ignored when it was interrupted


# A loss that is no longer a number ends the training, and the samples behind it are named.


SHOWN_SAMPLES = 5


def check_finite(loss: torch.Tensor, batch: Batch, module: Module) -> None:
    """Raise where a loss is NaN or infinite; the weights are then still those of the step before."""
    if torch.isfinite(loss).all():
        return
    guilty = _guilty_rows(batch, module)
    rows = guilty or range(len(batch["index"]))
    names = _names([int(batch["index"][row]) for row in rows], module)
    which = f"because of {names}" if guilty else f"in the batch with {names}, though each of them alone is fine"
    raise TrainingError(
        f"the loss became {float(loss.detach().sum())} in epoch {module.current_epoch + 1}, step "
        f"{module.global_step + 1}, {which}. {_remedy(bool(guilty), module)} The last checkpoint is as it was."
    )


def _remedy(has_guilty: bool, module: Module) -> str:
    lower = f"lower the learning rate (now {module.learning_rate:g}), or set gradient_clip"
    return f"Look at these samples (penstock show), or {lower}." if has_guilty else f"{lower.capitalize()}."


def _guilty_rows(batch: Batch, module: Module) -> list[int]:
    """The rows that alone give no finite loss."""
    network = module.network
    was_training = network.training
    network.eval()  # one sample has no statistics of a batch
    try:
        with torch.no_grad():
            return [row for row in range(len(batch["index"])) if not _is_fine(_one_row(batch, row), module)]
    finally:
        network.train(was_training)


def _is_fine(batch: Batch, module: Module) -> bool:
    return bool(torch.isfinite(module.task.loss(module.network, batch)["loss"]).all())


def _one_row(batch: Batch, row: int) -> Batch:
    return {name: _row_of(value, row) for name, value in batch.items()}


def _row_of(value: Any, row: int) -> Any:
    has_rows = isinstance(value, (torch.Tensor, list)) and not (isinstance(value, torch.Tensor) and value.ndim == 0)
    return value[row : row + 1] if has_rows else value


def _names(indices: list[int], module: Module) -> str:
    source = module.feed.train if module.feed is not None else None
    shown = [_name(source, index) for index in indices[:SHOWN_SAMPLES]]
    more = len(indices) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _name(source: Store | None, index: int) -> str:
    return f"sample {index}" if source is None else source.describe(index)
