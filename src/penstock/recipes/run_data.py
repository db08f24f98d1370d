"""The data that a Run was trained on, split in the same way again."""

from __future__ import annotations

from dataclasses import replace

from penstock.errors import RecipeError
from penstock.runs.run import Run
from penstock.samples import Source
from penstock.training.options import DataOptions


def run_data_options(run: Run) -> DataOptions:
    """Where the data of a Run came from; a list of paths is a tuple again."""
    settings = dict(run.settings.get("data") or {})
    path = settings.get("path")
    if not path:
        raise RecipeError(f"{run.folder} was not trained on files, so name the data that you mean.")
    return DataOptions(**{**settings, "path": tuple(path) if isinstance(path, list) else path})


def run_split(run: Run, split: str | None = None) -> Source:
    """One split of the data that a Run was trained on; by default the one that it was validated with."""
    from penstock.training.data_splits import training_data

    options = run_data_options(run)
    name = split or options.val
    if name is None:
        raise RecipeError(f"{run.folder} was trained without validation. Name a split, or other data.")
    return training_data(options.path, replace(options, train=name, val=None)).train
