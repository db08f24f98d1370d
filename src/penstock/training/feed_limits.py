"""Whether a training waits for data or for the network, and by how much: one line at the end, and while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from lightning.pytorch.callbacks import Callback

from penstock.flow.measuring.hops import HOPS
from penstock.flow.measuring.waiting import Waiting

WATCH_SECONDS = 5.0
FEWEST_BATCHES = 3  # between two lines: the use of the last one is not over yet
Say = Callable[[str], None]


def limit_line(metrics: Mapping[str, Any]) -> str:
    """In words, from the metrics of the training flow."""
    waiting = Waiting(metrics["waited_seconds"], metrics["consumer_seconds"])
    if not waiting.seconds or not metrics["batches"]:
        return "too few steps to say whether data or compute is the limit."
    share = waiting.share
    rate = f"{metrics['samples'] / waiting.seconds:,.0f} samples/s"
    if not waiting.is_bound_by_data:
        return f"bound by compute: {1 - share:.0%} of the time in the network, {share:.0%} waiting for data ({rate})."
    return (
        f"bound by data: {share:.0%} of the time waiting for it, most of it for {_slowest_hop(metrics)} ({rate}). "
        f"Data at once would make training {waiting.gain:.1f} × as fast."
    )


def _slowest_hop(metrics: Mapping[str, Any]) -> str:
    hops = metrics["hops"]
    return max(HOPS, key=lambda hop: hops[hop]["cpu_seconds"] + hops[hop]["wait_seconds"] if hop != "deliver" else -1)


def difference(now: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    """What happened between two reports."""
    if before is None:
        return dict(now)
    names = ("waited_seconds", "consumer_seconds", "batches", "samples")
    return {**now, **{name: now[name] - before[name] for name in names}}


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
        if part["batches"] >= FEWEST_BATCHES:
            self._say(limit_line(part))
            self._told, self._before = self._clock(), now


class TimeEstimate(Callback):
    """Says after some steps how long the training will take."""

    STEPS = 10

    def __init__(self, say: Say, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._clock = say, clock
        self._began: float | None = None
        self._seen = 0

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_number: int) -> None:
        self._seen += 1
        if self._began is None:  # the first step also warms up
            self._began = self._clock()
        elif self._seen == self.STEPS + 1 and trainer.is_global_zero and trainer.max_epochs > 0:
            step_seconds = (self._clock() - self._began) / self.STEPS
            batches = trainer.num_training_batches
            left = batches * (trainer.max_epochs - trainer.current_epoch) - batch_number - 1
            self._say(f"about {in_words(step_seconds * left)} to go, without validation: {step_seconds:.2g} s a batch.")


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
