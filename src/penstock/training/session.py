"""One training from the first word to the last: what `ps.train` does once its arguments are understood."""

from __future__ import annotations

import gc
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.utilities.rank_zero import rank_zero_only

from penstock.errors import TrainingError
from penstock.runs.layout import SAMPLES, plain
from penstock.runs.run import Run
from penstock.runs.writing import RunWriter
from penstock.storage.whole_files import remove_leftovers
from penstock.tasks.task import Goal, Task
from penstock.training import telling
from penstock.training.callbacks import Interrupted, Stopping
from penstock.training.data_splits import TrainingData, facts_of
from penstock.training.feeds import FeedWatch, TimeEstimate, flow_of, limit_line
from penstock.training.module import Module
from penstock.training.options import AUTO, Settings
from penstock.training.resources import (
    check_disk,
    chosen_batch_size,
    chosen_precision,
    is_out_of_memory,
    needs_of,
    out_of_memory,
)
from penstock.training.resuming import FINISHED, LAST, Beginning, Progress, last_checkpoint, progress_of
from penstock.training.run_files import RunDetails, RunLogger, environment, now
from penstock.training.trainers import (
    LOG_STEPS,
    as_list,
    device_type,
    feed_of,
    goal_of,
    module_of,
    tensorboard,
    trainer_for,
    without_srun_hint,
)
from penstock.wording import counted

SCARCE_SHARE = 0.1  # of the free disk: checkpoints that take more are worth a word
WITHOUT_VALIDATION = Goal("train_loss", larger_is_better=False)


@dataclass(frozen=True)
class Extras:
    """What a user adds to a training beside options."""

    logger: Any = None
    callbacks: Sequence[Any] = ()
    trainer: Mapping[str, Any] = field(default_factory=dict)
    transform: Callable[..., Any] | None = None


class Session:
    """A training in a folder. Only rank 0 writes and speaks."""

    def __init__(self, task: Task, data: TrainingData, settings: Settings, extras: Extras, start: Beginning) -> None:
        self.task, self.data, self.settings, self.extras = task, data, settings, extras
        self.folder = Path(settings.run.folder)
        self.goal = goal_of(settings.train, task.goal if data.val is not None else WITHOUT_VALIDATION)
        self._checkpoint = start.checkpoint
        device = device_type(settings.train)
        self.batch_size = chosen_batch_size(settings.train, len(data.train), device)
        self.on_device = int(start.chosen.get("on_device", self.batch_size))
        self._precision = str(extras.trainer.get("precision", chosen_precision(settings.train, device)))
        self._recipe = settings.sections(task)
        self._is_beginning_told = False
        self._writer = RunWriter(self.folder) if is_first_rank() else None

    # Words

    def say(self, text: str) -> None:
        """To the terminal and to the log of the Run."""
        if self._writer is not None:
            print(f"penstock: {text}", file=sys.stderr, flush=True)
            self._writer.say(text)

    # From the beginning to the end

    def run(self) -> Run:
        """Train, and write the Run."""
        started = time.monotonic()
        self._begin()
        try:
            trainer = self._fitted()
        except BaseException as error:
            self._end(outcome_of(error), started)
            raise
        self._finish(trainer)
        self._end(FINISHED if not self.settings.train.fast_dev_run else "tried", started)
        wait_for_first_rank()
        return Run(self.folder)

    def _begin(self) -> None:
        if self._writer is None:
            return
        remove_leftovers(self._writer.checkpoints)
        self._writer.write_environment({**environment(), "started": now(), "outcome": "running", "devices": _devices()})
        if self._checkpoint is not None:
            self.say(f"resuming {self.folder} after step {progress_of(self._checkpoint).step:,}.")
        self.say(telling.data_line(self.task, self.data))
        for remark in self.data.remarks:
            self.say(remark)
        for remark in getattr(self.task, "remarks", list)():
            self.say(remark)
        if self.settings.train.preload is not None:
            for remark in getattr(self.task, "preload_remarks", list)():
                self.say(remark)
        line = telling.pack_line(self.task, self.data.train, self.settings.train.seed)
        if line is not None:
            self.say(line)

    def _finish(self, trainer: Any) -> None:
        flow = flow_of(trainer)
        if flow is None or self._writer is None:
            return
        metrics = flow.metrics()
        self._write_settings(trainer.lightning_module, metrics.get("settings"))
        self.say(limit_line(metrics))
        bad = len(Run(self.folder).bad_samples())
        if bad:
            self.say(f"{counted(bad, 'sample')} could not be read; others took their places (listed in {SAMPLES}).")

    def _end(self, outcome: str, started: float) -> None:
        if self._writer is not None:
            self._writer.write_outcome(outcome, now(), time.monotonic() - started)

    # Fitting

    def _fitted(self) -> Any:
        """The trainer after training; where memory does not suffice, less is put on the device at a time."""
        while True:
            try:
                return self._attempt()
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                self._halve(error)
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()

    def _halve(self, error: BaseException) -> None:
        train = self.settings.train
        ranks = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
        if train.batch_size != AUTO or ranks > 1 or self.on_device == 1:
            raise out_of_memory(error, self.on_device // ranks, train) from error
        self.on_device //= 2
        last = last_checkpoint(self.folder)
        self._checkpoint = last if progress_of(last).is_between_epochs else None
        self.say(
            f"out of memory: now {counted(self.on_device, 'sample', 'is')} on the device at a time, and "
            f"gradients are added up over "
            f"{counted(self.batch_size // self.on_device, 'batch')}, so that a step still sees {self.batch_size}."
        )

    def _attempt(self) -> Any:
        train, progress = self.settings.train, progress_of(self._checkpoint)
        self._rewind(progress)
        feed = feed_of(self.task, self.data, self.on_device, train, self.settings.feed, self.extras.transform)
        module = module_of(self.task, train, feed, global_batch_size=self.batch_size, recipe=self._recipe)
        self._tell_beginning(module)
        self._tell_needs(module)
        self._write_settings(module, None)
        stopping = Stopping(self.folder / "checkpoints" / LAST if train.checkpoints else None)
        with _quiet_lightning(), stopping.on_signal():
            trainer = self._trainer(module, stopping, progress.step)
            try:
                trainer.fit(module, ckpt_path=self._checkpoint, weights_only=True)
            except (Interrupted, SystemExit) as stop:  # Lightning leaves by SystemExit when it is interrupted itself
                raise KeyboardInterrupt(self._stopped(isinstance(stop, Interrupted))) from None
            finally:
                _close(trainer)
        return trainer

    def _stopped(self, is_saved: bool) -> str:
        """How to go on."""
        last = last_checkpoint(self.folder)
        if last is None:
            text = "interrupted before the first checkpoint; the same command begins anew."
        else:
            where = "its state is in" if is_saved else "the last state is in"
            text = f"interrupted; {where} {last}. The same command goes on from there."
        self.say(text)
        return text

    def _rewind(self, progress: Progress) -> None:
        """Bring the metrics to what an undisturbed training has at this step: later lines would come twice."""
        if self._writer is None:
            return
        self._writer.forget_metrics_after(progress.step)
        if progress.epoch_means and not self._writer.has_metrics(progress.step, progress.epoch_means):
            self._writer.log_metrics(progress.epoch_means, epoch=progress.epoch, step=progress.step)

    def _trainer(self, module: Module, stopping: Stopping, first_step: int) -> Any:
        given = dict(self.extras.trainer)
        callbacks = [stopping, *as_list(given.pop("callbacks", None)), *self.extras.callbacks]
        loggers = _loggers(given.pop("logger", self.extras.logger), self.folder, first_step)
        log = str(self._writer.feed) if self._writer is not None else None
        callbacks += [
            FeedWatch(self.say, log=log, watch=self.settings.run.watch),
            TimeEstimate(self.say, repeat=not sys.stderr.isatty()),
        ]
        if self._writer is not None:
            callbacks.append(RunDetails(self._writer, self.goal))
            loggers.append(RunLogger(self._writer))
        if self.data.val is None:
            given["limit_val_batches"] = 0
        given.setdefault("enable_progress_bar", self.settings.run.progress)
        given.setdefault("log_every_n_steps", self._log_steps(module))
        together = self.settings.train.accumulate * (self.batch_size // self.on_device)
        given.setdefault("accumulate_grad_batches", together)
        trainer = trainer_for(
            self.settings.train, folder=self.folder, goal=self.goal, logger=loggers, callbacks=callbacks, **given
        )
        # Progress of the network is saved with that of the flow, so the state is written after all other callbacks ran.
        trainer.callbacks.sort(key=lambda callback: callback is stopping)
        return trainer

    def _log_steps(self, module: Module) -> int:
        batches = -(-module.sample_count() // self.on_device)
        return max(1, min(LOG_STEPS, batches))

    # What is said and written of it

    def _tell_beginning(self, module: Module) -> None:
        """What was taken from the given weights; a resumed training has gone on from there."""
        if module.taken is not None and self._checkpoint is None and not self._is_beginning_told:
            self.say(module.taken.line(str(getattr(self.task, "weights", "the given weights"))))
            self._is_beginning_told = True

    def _tell_needs(self, module: Module) -> None:
        if self._writer is None:
            return
        needs = needs_of(module.network, self.settings.train)
        free = check_disk(needs, self.folder)
        # Who trains in a folder with room enough needs to know nothing of it; the log has it.
        tell = self.say if needs.disk > SCARCE_SHARE * free else self._writer.say
        tell(telling.needs_line(needs, free, self.on_device))
        self.say(telling.choices_line(self._chosen(module)))

    def _chosen(self, module: Module) -> dict[str, Any]:
        return {
            "batch_size": self.batch_size,
            "on_device": self.on_device,
            "learning_rate": module.learning_rate,
            "precision": self._precision,
        }

    def _write_settings(self, module: Module, feed: Mapping[str, Any] | None) -> None:
        if self._writer is None:
            return
        data = facts_of(self.data)
        chosen: dict[str, Any] = {"data": data, "train": self._chosen(module), "goal": self.goal._asdict()}
        if module.taken is not None:
            chosen["weights"] = module.taken.facts()
        if self.extras.trainer:
            chosen["trainer"] = {name: _recorded(value) for name, value in self.extras.trainer.items()}
        if feed:
            chosen["feed"] = plain({name: feed[name] for name in ("workers", "prefetch") if name in feed})
        self._writer.write_settings(self._recipe, chosen)


def _recorded(value: Any) -> Any:
    """An argument of the Trainer as settings have it: plain values as they are, objects by their kind."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else type(value).__name__


def wait_for_first_rank() -> None:
    """Leave a training together: what the others do next may look at the Run, which the first one writes."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.barrier()


def is_first_rank() -> bool:
    """Whether this process is the one that writes, as launchers tell it before there is a Trainer."""
    return bool(rank_zero_only.rank == 0)


def _loggers(logger: Any, folder: Path, first_step: int) -> list[Any]:
    """TensorBoard's files unless the user has others, or wants none."""
    if logger is False:
        return []
    # A resumed training hides what was logged after the checkpoint.
    return [tensorboard(folder, purge_step=first_step)] if logger in (None, True) else as_list(logger)


def _close(trainer: Any) -> None:
    """End the workers of the flows."""
    for loader in (trainer.train_dataloader, trainer.val_dataloaders):
        for one in as_list(loader):
            if hasattr(one, "close"):
                one.close()


def outcome_of(error: BaseException) -> str:
    """How a training ended that did not finish, in a few words."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    text = str(error).strip().splitlines()
    kind = "" if isinstance(error, TrainingError) else f"{type(error).__name__}: "
    return f"failed: {kind}{text[0] if text else ''}".rstrip(": ")


def _devices() -> list[str]:
    return [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())] or ["cpu"]


@contextmanager
def _quiet_lightning() -> Iterator[None]:
    """Without Lightning's own advertisements and summaries; its warnings to users stay."""
    loggers = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        with without_srun_hint():
            warnings.filterwarnings("ignore", ".*LeafSpec.*", FutureWarning)  # from torch to Lightning
            warnings.filterwarnings("ignore", ".*log_every_n_steps.*")  # epochs are logged however short they are
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
