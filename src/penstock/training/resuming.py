"""Whether a folder is free, or holds an unfinished Run of the same settings that can be gone on with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from penstock.errors import OptionError
from penstock.runs import layout
from penstock.runs.layout import plain
from penstock.runs.run import Run
from penstock.tasks.weights import read_torch
from penstock.training.options import differences

FINISHED = "finished"
LAST = "last.ckpt"


class Beginning(NamedTuple):
    """Where a training begins."""

    is_finished: bool = False
    checkpoint: Path | None = None
    chosen: Mapping[str, Any] = {}


def beginning(folder: Path, settings: Mapping[str, Any], resume: str) -> Beginning:
    """Look at the folder of a Run; settings that are not those it was begun with are refused, one by one."""
    if not (folder / layout.SETTINGS).exists():
        return Beginning()
    if resume == "never":
        raise OptionError(
            f"{folder} holds a Run already. Choose another run.folder, remove it, or set run.resume: auto."
        )
    run = Run(folder)
    found = differences(run.settings, plain(settings))
    if found:
        raise OptionError(
            f"{folder} holds a Run of other settings: {'; '.join(found)}. Use those to go on with it, or another "
            "run.folder to begin anew."
        )
    chosen = run.chosen.get("train") or {}
    if run.environment.get("outcome") == FINISHED:
        return Beginning(is_finished=True)
    return Beginning(False, last_checkpoint(folder), chosen)


def beginning_of_others(folder: Path) -> Beginning:
    """Where ranks that do not write begin: as the first one, which has checked the folder, or is doing so."""
    if not (folder / layout.SETTINGS).exists():
        return Beginning()
    run = Run(folder)
    # A rank that trains while the first one does not would wait for it for ever.
    is_finished = run.environment.get("outcome") == FINISHED
    return Beginning(is_finished, last_checkpoint(folder), run.chosen.get("train") or {})


def last_checkpoint(folder: Path) -> Path | None:
    """What a training can go on from."""
    path = folder / layout.CHECKPOINTS / LAST
    return path if path.is_file() else None


class Progress(NamedTuple):
    """How far a training was when it wrote a checkpoint."""

    step: int = 0  # steps of the weights
    epoch: int = 0  # that ran or ended then, counted from 1
    is_between_epochs: bool = False  # it can then be resumed with batches of another size
    epoch_means: Mapping[str, Any] = {}  # losses of the epoch that ended, which are logged after the checkpoint


def progress_of(checkpoint: Path | None) -> Progress:
    """Without a checkpoint nothing was done."""
    if checkpoint is None:
        return Progress()
    content = read_torch(checkpoint)
    current = content["loops"]["fit_loop"]["epoch_progress"]["current"]
    means = content.get("penstock", {}).get("train", {}).get("epoch_means", {})
    return Progress(
        int(content["global_step"]), int(content["epoch"]) + 1, current["ready"] == current["processed"], means
    )
