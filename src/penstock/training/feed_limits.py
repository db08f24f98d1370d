"""Whether a training waits for data or for the network, and by how much: one line at the end, and while it runs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from lightning.pytorch.callbacks import Callback

from penstock.flow.measuring.hops import HOPS
from penstock.flow.measuring.waiting import NOT_KNOWN, Waiting

WATCH_SECONDS = 5.0
Say = Callable[[str], None]


def limit_line(metrics: Mapping[str, Any]) -> str:
    """In words, from the metrics of the training flow."""
    waiting = Waiting.of(metrics)
    if not waiting.is_known:
        return f"{NOT_KNOWN}."
    share, rate = waiting.share, rate_words(metrics["samples"] / waiting.seconds)
    if not waiting.is_bound_by_data:
        return f"bound by compute: {1 - share:.0%} of the time in the network, {share:.0%} waiting for data ({rate})."
    return (
        f"bound by data: {share:.0%} of the time waiting for it, most of it for {_slowest_hop(metrics)} ({rate}). "
        f"{waiting.gain_words}"
    )


def rate_words(rate: float) -> str:
    """Samples a second; few of them are never none."""
    return f"{rate:,.0f} samples/s" if rate >= 10 else f"{rate:.2g} samples/s"


def _slowest_hop(metrics: Mapping[str, Any]) -> str:
    hops = metrics["hops"]
    return max(HOPS, key=lambda hop: hops[hop]["cpu_seconds"] + hops[hop]["wait_seconds"] if hop != "deliver" else -1)


def difference(now: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    """What happened between two reports."""
    if before is None:
        return dict(now)
    names = ("waited_seconds", "first_wait_seconds", "consumer_seconds", "batches", "samples")
    return {**now, **{name: now.get(name, 0.0) - before.get(name, 0.0) for name in names}}


class FeedWatch(Callback):
    """Logs what each hop does, estimates the time after the first steps, and with `watch` tells the limit."""

    def __init__(self, say: Say, *, log: str | None, watch: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._log, self._watch, self._clock = say, log, watch, clock
        self._told = 0.0
        self._before: dict[str, Any] | None = None

    def on_train_start(self, trainer: Any, module: Any) -> None:
        self._told, self._before = self._clock(), None
        flow = flow_of(trainer)
        if flow is not None and self._log is not None and trainer.is_global_zero:
            flow.log_metrics(self._log)

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_number: int) -> None:
        if not self._watch or not trainer.is_global_zero or self._clock() - self._told < WATCH_SECONDS:
            return
        flow = flow_of(trainer)
        if flow is not None:
            self._tell(flow.metrics())

    def _tell(self, now: dict[str, Any]) -> None:
        part = difference(now, self._before)
        if Waiting.of(part).is_known:
            self._say(limit_line(part))
            self._told, self._before = self._clock(), now


class TimeEstimate(Callback):
    """Says after some steps how long the training will take, and with `repeat` every minute how far it is."""

    STEPS = 10
    EVERY_SECONDS = 60.0

    def __init__(self, say: Say, *, repeat: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._repeat, self._clock = say, repeat, clock
        self._told = self._since = 0.0
        self._seen = self._seen_since = 0

    def on_train_start(self, trainer: Any, module: Any) -> None:
        self._told = self._since = self._clock()
        self._seen = self._seen_since = 0

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_number: int) -> None:
        self._seen += 1
        if self._seen == 1:  # the first step also warms up
            self._since, self._seen_since = self._clock(), 1
        if self._seen == self.STEPS + 1 or self._is_due():
            self._tell(trainer, batch_number)

    def on_validation_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, number: int, *_: Any
    ) -> None:
        if self._is_due() and not trainer.sanity_checking:
            self._speak(trainer, f"epoch {trainer.current_epoch + 1}, validation, batch {number + 1:,}.")

    def _is_due(self) -> bool:
        return self._repeat and self._clock() - self._told >= self.EVERY_SECONDS

    def _tell(self, trainer: Any, batch_number: int) -> None:
        count, batches = self._seen - self._seen_since, trainer.num_training_batches
        epochs = trainer.max_epochs if trainer.max_epochs and trainer.max_epochs > 0 else None
        where = f"epoch {trainer.current_epoch + 1}{f' of {epochs}' if epochs else ''}, batch {batch_number + 1:,}"
        where += f" of {batches:,}" if math.isfinite(batches) else ""
        if not count:
            self._speak(trainer, f"{where}.")
            return
        step_seconds = (self._clock() - self._since) / count
        self._since, self._seen_since = self._clock(), self._seen
        left = batches * ((epochs or math.inf) - trainer.current_epoch) - batch_number - 1
        ending = f"; about {in_words(step_seconds * left)} to go" if math.isfinite(left) else ""
        self._speak(trainer, f"{where}: {step_seconds:.2g} s a batch{ending}.")

    def _speak(self, trainer: Any, text: str) -> None:
        self._told = self._clock()
        if trainer.is_global_zero:
            self._say(text)


def flow_of(trainer: Any) -> Any:
    """The training flow, where it is ours."""
    return getattr(trainer.train_dataloader, "flow", None)


def in_words(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
