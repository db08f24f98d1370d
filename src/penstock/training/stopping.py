"""Ctrl-C: the step is finished, a checkpoint is written, and then training ends. A second Ctrl-C ends it at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from lightning.pytorch.callbacks import Callback

from penstock.training.checkpoints import may_stop_here

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
