"""A training in three stages, one Run: motion without labels, frames with labels, then the sequence of frames.

runs/mice/                    a Run: the whole recipe, scores of the whole chain, the checkpoint that predicts
  stages/flow/                a Run
  stages/frames/              a Run, which begins with the motion network of the one before
  stages/sequence/            a Run on features of whole videos, which begins with the heads of the one before
  stages/features/            these features, while they are needed

Each stage is an ordinary training, so each goes on where it stopped; a finished one is not trained again.
"""

from __future__ import annotations

import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import xxhash

from penstock.errors import OptionError
from penstock.runs import layout
from penstock.runs.run import Run
from penstock.runs.writing import RunWriter
from penstock.samples import Store
from penstock.tasks.behaviour.behaviour import Behaviour
from penstock.tasks.behaviour.frame_data import FeatureWindows, VideoFeatures
from penstock.tasks.behaviour.stages import no_transform
from penstock.tasks.checkpoints import computed_precision
from penstock.tasks.weights import Taken, taken_from
from penstock.training.data_splits import TrainingData, facts_of
from penstock.training.options import AUTO, Settings, TrainOptions
from penstock.training.resources import chosen_precision
from penstock.training.resuming import FINISHED, Beginning, beginning, beginning_of_others
from penstock.training.run_files import environment, now
from penstock.training.session import Extras, Session, is_first_rank, outcome_of, wait_for_first_rank
from penstock.training.staged_features import extracted_features, network_of_frames
from penstock.training.staged_results import write_results
from penstock.training.trainers import begun_network, device_type
from penstock.wording import counted

FEATURES = "features"
FINE_RATE = 3e-4  # for streams that begin with weights: higher rates destroy what they know
WINDOW_STEPS = 4  # windows that each frame is in, in training


class StagedTraining:
    """The training of a Behaviour in a folder. Only rank 0 writes and speaks."""

    def __init__(self, task: Any, data: TrainingData, settings: Settings, extras: Extras, start: Beginning) -> None:
        self.task: Behaviour = task
        self.data, self.settings, self.extras, self.start = data, settings, extras, start
        self.folder = Path(settings.run.folder)
        self._check_options()
        # Before anything is written: settings with a wrong path are no Run to go on with.
        self._taken: dict[str, Taken | None] = {}
        for name in self.task.stage_names if self.task.weights is not None else ():
            self._taken[name] = self._taken_by(name)
        self._writer = RunWriter(self.folder) if is_first_rank() else None

    def run(self) -> Run:
        """Train stage after stage, and write the Run."""
        started = time.monotonic()
        self._begin()
        try:
            self._train()
        except BaseException as error:
            self._end(outcome_of(error), started)
            raise
        self._end("tried" if self.settings.train.fast_dev_run else FINISHED, started)
        wait_for_first_rank()
        return Run(self.folder)

    def _begin(self) -> None:
        if self._writer is None:
            return
        chosen = {"data": facts_of(self.data), "goal": self.task.goal._asdict()}
        weights = str(self.task.weights)
        taken = {name: one.line(weights) for name, one in self._taken.items() if one is not None}
        if taken:
            chosen["weights"] = taken
        self._writer.write_settings(self.settings.sections(self.task), chosen)
        self._writer.forget_metrics_after(-1)  # the line of the whole chain is written at the end, and once
        self._writer.write_environment({**environment(), "started": now(), "outcome": "running"})
        for remark in self.task.remarks(self.data.val):
            self._say(remark)

    def _end(self, outcome: str, started: float) -> None:
        if self._writer is not None:
            self._writer.write_outcome(outcome, now(), time.monotonic() - started)

    def _say(self, text: str) -> None:
        if self._writer is not None:
            print(f"penstock: {text}", file=sys.stderr, flush=True)
            self._writer.say(text)

    # Stages

    def _check_options(self) -> None:
        """Refuse, before hours are spent, what stages cannot do."""
        train = self.settings.train
        if not train.checkpoints:
            raise OptionError("checkpoints are off, and each stage begins with that of the one before. Leave them on.")
        if train.preload is not None:
            raise OptionError(
                f"preload={train.preload!r} is for whole samples, and a behaviour is learned from clips. Leave it out."
            )
        if self.extras.transform is not None:
            no_transform(self.extras.transform)

    def _taken_by(self, name: str) -> Taken | None:
        """What a stage takes from the given weights: they are loaded once and thrown away, hours before they are used.

        A finished stage needs them no more, and its Run says what it took. Nor does the sequence stage after streams
        that began with a plain network.
        """
        folder = self.folder / layout.STAGES / name
        if name == "sequence" and _is_finished(folder.with_name("frames")):
            streams = self._taken["frames"]
            if streams is None or not streams.model.startswith(self.task.kind):
                return None
        if not _is_finished(folder):
            stage: Any = self.task.stage(name)
            return begun_network(stage, self.settings.train.seed).taken
        facts = Run(folder).chosen.get("weights")
        return None if facts is None else taken_from(facts)

    def _train(self) -> None:
        flow = self._stage("flow", self.data, None)
        if self.settings.train.fast_dev_run:  # a trial keeps no weights that a next stage could begin with
            self._stage("frames", self.data, None)
            return
        frames = self._stage("frames", self.data, flow)
        checkpoint = frames.checkpoint("best")
        train, val = self._features(checkpoint)
        sequence = self._stage("sequence", self._windows(train, val), frames)
        if self._writer is not None:
            checkpoints = (checkpoint, sequence.checkpoint())
            write_results(self._writer, self.task, self.settings, self._precision, self.data, (train, val), checkpoints)
            shutil.rmtree(self._features_folder, ignore_errors=True)

    def _stage(self, name: str, data: TrainingData, before: Run | None) -> Run:
        """Train one stage, or go on with it, or take it as it is when it is finished."""
        folder = self.folder / layout.STAGES / name
        stage: Any = self.task.stage(name, None if before is None else str(before.checkpoint("best")))
        if name == "sequence":
            stage = replace(stage, is_warm=self._taken.get(name) is not None)
        run = replace(self.settings.run, folder=str(folder))
        settings = replace(self.settings, run=run, train=self._options(name, data))
        if settings.train.fast_dev_run:
            start = Beginning()
        elif is_first_rank():
            start = beginning(folder, settings.sections(stage), settings.run.resume)
        else:
            start = beginning_of_others(folder)
        if start.is_finished:
            return Run(folder)
        self._say(f"stage {name}:")
        return Session(stage, data, settings, self.extras, start).run()

    def _options(self, name: str, data: TrainingData) -> TrainOptions:
        """What the user chose is meant for the frames stage; the others are quick, and need the same for all data."""
        train, task = self.settings.train, self.task
        if name == "frames":
            rate = FINE_RATE if train.learning_rate == AUTO and task.weights is not None else train.learning_rate
            patience = task.patience if train.early_stopping is None else train.early_stopping
            return replace(train, learning_rate=rate, early_stopping=patience, monitor=self._monitor(data))
        own: dict[str, Any] = {
            "learning_rate": FINE_RATE if self._is_warm(name) else AUTO,
            "freeze": None,
            "optimizer": "adamw",
            "momentum": TrainOptions.momentum,
            "schedule": "cosine",
            "preload": None,
        }
        if name == "flow":
            return replace(train, epochs=task.flow_epochs, early_stopping=None, monitor=AUTO, **own)
        patience = None if task.patience is None else 2 * task.patience
        monitor = self._monitor(data)
        return replace(
            train, epochs=task.sequence_epochs, batch_size=AUTO, early_stopping=patience, monitor=monitor, **own
        )

    def _is_warm(self, name: str) -> bool:
        """Whether a stage begins with what a model has learned before."""
        taken = self._taken.get(name)
        return taken is not None and taken.tensors_taken > 0

    def _monitor(self, data: TrainingData) -> str:
        """F1, unless the validation split has no behaviour that it could be told of: then the loss."""
        chosen = self.settings.train.monitor
        if chosen != AUTO or data.val is None or self.data.val is None:
            return chosen
        labels = self.task.labels_of(self.data.val)
        others = [number for number in range(labels.shape[1]) if number != self.task.background]
        return AUTO if (labels[:, others] == 1).any() else "val_loss"

    # Features of whole videos

    @property
    def _precision(self) -> str:
        """What the stages compute with, and so whatever uses the Run."""
        train = self.settings.train
        asked = self.extras.trainer.get("precision", chosen_precision(train, device_type(train)))
        return computed_precision(asked, torch.device(device_type(train)))

    @property
    def _features_folder(self) -> Path:
        return self.folder / layout.STAGES / FEATURES

    def _features(self, checkpoint: Path) -> tuple[list[VideoFeatures], list[VideoFeatures]]:
        network = network_of_frames(checkpoint, self.settings.train, self._precision)
        # Named after the weights that made them: those of other weights are never taken for them.
        folder = self._features_folder / f"{xxhash.xxh3_64_hexdigest(checkpoint.read_bytes())}-{self._precision}"

        def of(source: Store | None, name: str) -> list[VideoFeatures]:
            if source is None:
                return []
            self._say(f"features of {counted(len(source), 'frame')} ({name}).")
            return extracted_features(self.task, network, self._precision, source, folder / name, self.settings.feed)

        return of(self.data.train, "train"), of(self.data.val, "val")

    def _windows(self, train: list[VideoFeatures], val: list[VideoFeatures]) -> TrainingData:
        frames = min(self.task.window_frames, max(len(video.labels) for video in train))

        def windows(videos: list[VideoFeatures], step: int) -> Any:
            behaviours = self.task.behaviours
            return FeatureWindows(videos, frames=frames, step=step, behaviours=behaviours)

        validation = windows(val, frames) if val else None
        how = f"windows of {counted(frames, 'frame')}; {self.data.how}"
        return TrainingData(windows(train, max(1, frames // WINDOW_STEPS)), validation, how, None)


def _is_finished(folder: Path) -> bool:
    return (folder / layout.SETTINGS).exists() and Run(folder).environment.get("outcome") == FINISHED
