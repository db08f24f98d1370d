"""The data that a Run was trained on, split in the same way again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.errors import OptionError
from penstock.runs.run import Run, data_words
from penstock.samples import Store
from penstock.training.data_splits import TrainingData, is_pair, names_file, training_data
from penstock.training.options import DataOptions


def run_split(run: Any, split: str | None = None) -> Store:
    """One split of the data that a Run was trained on; by default the one that it was validated with."""
    options = _data_options(_run(run))
    if names_file(options.val):
        return _one_of_two(training_data(options.path, options), split)
    name = split or options.val
    if name is None:
        raise OptionError(f"{run} was trained without validation. Name a split, or other data.")
    if not is_pair(options.path):
        return training_data(options.path, replace(options, train=name, val=None)).train
    parts = training_data(options.path, options)
    found = {options.train: parts.train, options.val: parts.val}.get(name)
    if found is None:
        raise OptionError(f"{run} was trained on two packs, {options.train} and {options.val}; there is no {name!r}.")
    return found


def _one_of_two(data: TrainingData, split: str | None) -> Store:
    """Training or validation of a Run that took both from different data."""
    parts = {"train": data.train, "val": data.val}
    chosen = parts.get(split or "val")
    if chosen is None:
        raise OptionError(f"there is no split {split!r}; there are train and val.")
    return chosen


def _run(run: Any) -> Run:
    """The Run that knows its data: a model or a checkpoint file does not."""
    if isinstance(run, Run):
        return run
    if not isinstance(run, (str, Path)) or Path(run).is_file():
        raise OptionError("a checkpoint or a model does not know the data of its training: name the data.")
    return Run(run)


def _data_options(run: Run) -> DataOptions:
    """Where the data came from; a list of paths is a tuple again."""
    settings = dict(run.settings.get("data") or {})
    path = settings.get("path")
    if not path:
        raise OptionError(f"{data_words(run)}. Name the data to evaluate on.")
    return DataOptions(**{**settings, "path": tuple(path) if isinstance(path, list) else path})
