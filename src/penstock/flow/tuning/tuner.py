"""How many workers, how many batches ahead, how long a task: tried while a flow runs, kept only if it got better.

    a window of deliveries ──► what is worth trying ──► apply it ──► another window ──► keep it, or take it back

Time is that of the consumer's loop, added up from delivery to delivery: short epochs are measured together.
Nothing here changes what is in a batch.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from penstock.flow.measuring.metrics import Metrics, Work
from penstock.flow.tuning.allocating import (
    USUAL_PREFETCH,
    Change,
    Limits,
    Measured,
    Settings,
    begun,
    changes,
    is_kept,
    is_like,
)
from penstock.flow.tuning.cores import cores as available_cores
from penstock.flow.tuning.remembering import Found, Remembered
from penstock.flow.workers.executors import Executor

WINDOW_SECONDS, WINDOW_BATCHES = 0.25, 32
LONGEST_WINDOW = 1.0  # slow batches: a second must do
LONGEST_SETTLING = 0.5
FORGET_AFTER = 30.0  # seconds until something refused may be tried again
MOST_RECORDS = 100
MOST_TIMES = 1000  # of the last batches in a window


@dataclass(frozen=True)
class Trial:
    """Settings on trial, and what was measured with those before them."""

    change: Change
    before: Settings
    measured: Measured


@dataclass(frozen=True)
class Refused:
    """What did not help, and when."""

    change: Change
    measured: Measured
    at: float

    def still_holds(self, change: Change, measured: Measured, now: float) -> bool:
        same = change.kind == self.change.kind and change.settings == self.change.settings
        return same and now - self.at < FORGET_AFTER and is_like(measured, self.measured)


class Tuner:
    """The settings of a flow. It is told of every delivery, in the consumer's thread, and now and then tries others."""

    def __init__(
        self,
        workers: int | None,
        prefetch: int | None,
        *,
        remembered: Remembered | None = None,
        cores: int | None = None,
    ) -> None:
        self._workers, self._prefetch = workers, prefetch
        self.cores = available_cores() if cores is None else cores
        self._remembered = remembered
        self._is_recalled = False
        self.recalled: Found | None = None  # from an earlier run
        self.settings = self._first_settings()
        self.reasons = self._first_reasons()
        self.history: deque[dict[str, Any]] = deque(maxlen=MOST_RECORDS)
        self.has_settled = False  # whether one window found nothing to try
        self._limits = Limits(self.cores, 1, workers=workers, prefetch=prefetch)
        self._seconds = 0.0
        self._trial: Trial | None = None
        self._refused: list[Refused] = []
        self._window = _Window(0)
        self._has_begun = False

    def _first_settings(self) -> Settings:
        workers = self.cores if self._workers is None else self._workers
        prefetch = self._prefetch or (USUAL_PREFETCH if workers else 0)
        return Settings(workers, prefetch)

    def _first_reasons(self) -> dict[str, str]:
        return {
            "workers": "pinned" if self._workers is not None else "at the start one for each core",
            "prefetch": "pinned" if self._prefetch is not None else "at the start",
            "task_rows": "at the start all workers share a batch",
        }

    # What the engine says

    def recall(self) -> None:
        """Begin with what an earlier run found good; called before workers are made."""
        if self._is_recalled:
            return
        self._is_recalled = True
        last = None if self._remembered is None else self._remembered.read()
        if last is None or not self.settings.workers:
            return
        self.recalled = last
        workers = self._workers if self._workers is not None else last.workers
        self.settings = Settings(workers, self._prefetch or last.prefetch, last.task_rows)
        for name, pinned in (("workers", self._workers), ("prefetch", self._prefetch), ("task_rows", None)):
            if pinned is None:
                self.reasons[name] = "remembered from an earlier run"

    def started(self, rows: int, most_prefetch: int) -> None:
        """An epoch begins, with batches of so many rows and room for so many batches ahead."""
        self._limits = Limits(self.cores, rows, max(most_prefetch, 1), self._workers, self._prefetch)
        if not self.history:
            self._record("start", self.settings)
        self._window = _Window(self.settings.prefetch + 1)

    def delivered(
        self, executor: Executor, metrics: Metrics, *, samples: int, waited_seconds: float, consumer_seconds: float
    ) -> None:
        """One more batch was waited for and used."""
        if not self.settings.workers:
            return
        self._seconds += waited_seconds + consumer_seconds
        if self.settings.task_rows is None and not self._has_begun:
            self._begin(metrics.work())
        self._window.add(metrics, samples, waited_seconds, consumer_seconds)
        if self._window.is_complete:
            self._judge(executor, self._window.measured(metrics.work()))

    def ended(self, executor: Executor) -> None:
        """The epoch is over or was left; what was found out is remembered."""
        if self._trial is not None:
            self.settings, self._trial = self._trial.before, None
        is_pinned = self._workers is not None or self._prefetch is not None  # then nothing was found, only told
        if self._remembered is not None and len(self.history) > 1 and not is_pinned:
            self._remembered.write(self.settings, executor.kind)

    def report(self, metrics: Metrics) -> dict[str, Any]:
        """The metrics, with the settings and how they came about."""
        notes = [self._remembered.note if self._remembered else None, metrics.log.note if metrics.log else None]
        return {
            **metrics.as_dict(),
            "settings": vars(self.settings) | {"reasons": dict(self.reasons)},
            "history": list(self.history),
            "notes": [note for note in notes if note is not None],
        }

    def _begin(self, work: Work) -> None:
        """The first batch tells whether a worker may have a whole one: that is cheaper, and nobody is kept waiting."""
        self._has_begun = True
        cost = (work.cpu_seconds + work.wait_seconds) / max(work.samples, 1)
        settings = begun(self.settings, cost, self._limits)
        if settings is not None:
            self.settings = settings
            self.reasons["task_rows"] = "a whole batch takes a worker little time"

    # Trials

    def _judge(self, executor: Executor, measured: Measured) -> None:
        """A window is full: keep or take back what was tried, and try something else."""
        trial, self._trial = self._trial, None
        if trial is not None and not self._keeps(trial, measured):
            self._refused = [one for one in self._refused if self._seconds - one.at < FORGET_AFTER]
            self._refused.append(Refused(trial.change, trial.measured, self._seconds))
            self._apply(executor, trial.before)
            return
        change = next(
            (one for one in changes(self.settings, measured, self._limits) if self._is_new(one, measured)), None
        )
        if change is None:
            self.has_settled = True
            self._window = _Window(0)
            return
        self._trial = Trial(change, self.settings, measured)
        self._apply(executor, change.settings)

    def _keeps(self, trial: Trial, measured: Measured) -> bool:
        is_good = is_kept(trial.change.kind, trial.measured, measured)
        gain = measured.rate / max(trial.measured.rate, 1e-9) - 1
        self._record(trial.change.why, trial.change.settings, kept=is_good, gain=round(gain, 3))
        if is_good:
            for name in ("workers", "prefetch", "task_rows"):
                if getattr(trial.before, name) != getattr(trial.change.settings, name):
                    self.reasons[name] = f"measured: {trial.change.why}"
        return is_good

    def _is_new(self, change: Change, measured: Measured) -> bool:
        return not any(one.still_holds(change, measured, self._seconds) for one in self._refused)

    def _apply(self, executor: Executor, settings: Settings) -> None:
        """Go on with other settings; what is under way was ordered with those before, so it is not measured."""
        under_way = max(self.settings.prefetch, settings.prefetch) + 1
        self.settings = settings
        if executor.workers != settings.workers:
            executor.resize(settings.workers)
        self._window = _Window(under_way)

    def _record(self, why: str, settings: Settings, **more: Any) -> None:
        self.history.append({"seconds": round(self._seconds, 3), **vars(settings), "why": why, **more})


class _Window:
    """Deliveries that are measured together, after some that are not."""

    def __init__(self, skipped: int) -> None:
        self._left_to_skip, self._skipped_seconds = skipped, 0.0
        self._start: Work | None = None
        self.batches = self.samples = 0
        self.waited = self.consumer = 0.0
        self._consumer_times: deque[float] = deque(maxlen=MOST_TIMES)

    def add(self, metrics: Metrics, samples: int, waited: float, consumer: float) -> None:
        if self._left_to_skip > 0 and self._skipped_seconds < LONGEST_SETTLING:
            self._left_to_skip -= 1
            self._skipped_seconds += waited + consumer
            return
        if self._start is None:
            self._start = metrics.work()
            return  # this delivery was before the first look at the workers
        self.batches += 1
        self.samples += samples
        self.waited += waited
        self.consumer += consumer
        self._consumer_times.append(consumer)

    @property
    def is_complete(self) -> bool:
        seconds = self.waited + self.consumer
        return seconds >= WINDOW_SECONDS and (self.batches >= WINDOW_BATCHES or seconds >= LONGEST_WINDOW)

    def measured(self, now: Work) -> Measured:
        assert self._start is not None
        start = self._start
        return Measured(
            self.batches,
            self.samples,
            self.waited,
            self.consumer,
            now.samples - start.samples,
            now.cpu_seconds - start.cpu_seconds,
            now.wait_seconds - start.wait_seconds,
            now.core_wait_seconds - start.core_wait_seconds,
            tuple(self._consumer_times),
        )
