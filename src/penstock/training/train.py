"""`ps.train`: a task and data become a Run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from penstock.errors import OptionError, require
from penstock.storage.locations import refuses_urls
from penstock.training.data_splits import path_of
from penstock.training.options import DataOptions, Settings, TrainOptions, settings_of

if TYPE_CHECKING:
    from penstock.runs.run import Run
    from penstock.tasks.task import Task

RUNS_FOLDER = "runs"


@refuses_urls()
def train(
    task: Task,
    data: Any = None,
    *,
    epochs: int = TrainOptions.epochs,
    folder: str | Path = "",
    resume: Literal["auto", "never"] = "auto",
    logger: Any = None,
    callbacks: Sequence[Any] | Any = None,
    trainer: Mapping[str, Any] | None = None,
    transform: Callable[..., Any] | None = None,
    **options: Any,
) -> Run:
    """Train a task, and give the Run: a folder with settings, metrics and checkpoints.

    `data` is a pack, a Source, a pair (train, val), or whatever `ps.open` takes. `options` are those of TrainOptions,
    FeedOptions, DataOptions and RunOptions, by name. `logger`, `callbacks` and `trainer` (arguments of its Trainer) go
    to Lightning, and so do arguments of the Trainer among the options, such as limit_train_batches; `logger=False` is
    for none. `transform` is a function of a training sample, or an albumentations pipeline. An unfinished Run of the
    same settings in `folder` is resumed.
    """
    for module in ("torch", "lightning.pytorch", "torchmetrics"):
        require(module, "train", "Training")
    from penstock.training.trainers import check_train_arguments, divide_options

    options, arguments = divide_options(options)
    check_train_arguments(trainer or {})
    twice = sorted(set(arguments) & set(trainer or {}))
    if twice:
        raise OptionError(f"{twice[0]} is given twice, as an option and in trainer={{…}}. Leave one out.")
    trainer = {**arguments, **(trainer or {})}
    given = {"epochs": epochs, "folder": os.fspath(folder), "resume": resume, **options}
    settings = _complete(settings_of(given), task, data)
    return _trained(task, settings.data.path if data is None else data, settings, logger, callbacks, trainer, transform)


def _complete(settings: Settings, task: Task, data: Any) -> Settings:
    """With the path that the data came from, and a folder."""
    settings = replace(settings, data=_data_options(settings.data, data))
    folder = settings.run.folder or f"{RUNS_FOLDER}/{_name(settings.data.path) or task.kind}"
    if settings.train.fast_dev_run:
        folder += "-trial"  # what a trial leaves must not look like the Run
    return replace(settings, run=replace(settings.run, folder=folder))


def _data_options(options: DataOptions, data: Any) -> DataOptions:
    if data is not None and options.path:
        raise OptionError(
            f"train has data and path={options.path!r}, and one of them would not be used. Leave one out."
        )
    if data is not None:
        return replace(options, path=path_of(data))
    if not options.path:
        raise OptionError("train needs data: a pack, a Source, a pair (train, val), or a path.")
    return options


def _name(path: str | tuple[str, ...]) -> str:
    return Path(path).stem if isinstance(path, str) and path else ""


def _trained(
    task: Task,
    data: Any,
    settings: Settings,
    logger: Any,
    callbacks: Any,
    trainer: Mapping[str, Any] | None,
    transform: Callable[..., Any] | None,
) -> Run:
    from penstock.runs.run import Run
    from penstock.training.data_splits import training_data
    from penstock.training.resources import need_accelerator
    from penstock.training.resuming import Beginning, beginning, beginning_of_others
    from penstock.training.session import Extras, Session, is_first_rank
    from penstock.training.trainers import as_list, fitted_task

    need_accelerator({"accelerator": settings.train.accelerator, **(trainer or {})}["accelerator"])
    parts = training_data(data, settings.data, settings.feed.on_bad_sample)
    task = fitted_task(task, parts)
    folder = Path(settings.run.folder)
    if settings.train.fast_dev_run:
        start = Beginning()
    elif is_first_rank():
        start = beginning(folder, settings.sections(task), settings.run.resume)
    else:
        start = beginning_of_others(folder)
    extras = Extras(logger, as_list(callbacks), trainer or {}, transform)
    if start.is_finished:
        if is_first_rank():
            print(f"penstock: {folder} is finished: nothing is left to train.")
        return Run(folder)
    if hasattr(task, "stage_names"):
        from penstock.training.staged import StagedTraining

        return StagedTraining(task, parts, settings, extras, start).run()
    return Session(task, parts, settings, extras, start).run()
