"""What a training writes into its Run beside checkpoints: metrics, details, worst samples, environment."""

from __future__ import annotations

import importlib.metadata
import math
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities.rank_zero import rank_zero_only

from penstock.codecs import kernel
from penstock.errors import PenstockError
from penstock.runs.writing import RunWriter
from penstock.samples import Store
from penstock.tasks.task import Goal

THUMBNAIL_PX = 160
BOXES_PX = 480  # boxes want larger pictures than things that fill theirs
THUMBNAIL_QUALITY = 85


class RunLogger(Logger):
    """metrics.jsonl, as one of Lightning's loggers: it gets what the others get."""

    def __init__(self, writer: RunWriter) -> None:
        super().__init__()
        self._writer = writer

    @property
    def name(self) -> str:
        return "run"

    @property
    def version(self) -> str:
        return ""

    @property
    def save_dir(self) -> str:
        return str(self._writer.folder)

    def log_hyperparams(self, params: Any, *arguments: Any, **named: Any) -> None:
        """settings.yaml has them."""

    @rank_zero_only  # type: ignore[untyped-decorator]
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        epoch = int(metrics.get("epoch", 0))
        values = {name: value for name, value in metrics.items() if name != "epoch"}
        if values:
            # Lightning counts steps and epochs from 0; people count what is done.
            self._writer.log_metrics(values, epoch=epoch + 1, step=(step or 0) + 1)


class RunDetails(Callback):
    """details.json and worst.json of the best validation so far, and samples.json."""

    def __init__(self, writer: RunWriter, goal: Goal) -> None:
        self._writer, self._goal = writer, goal
        self._best: float | None = None

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        evaluation = module.last_evaluation
        if trainer.sanity_checking or evaluation is None or not self._is_best(evaluation.values):
            return
        if trainer.is_global_zero:
            self._writer.write_details(evaluation.scores.details())
        worst = getattr(evaluation.scores, "worst", None)
        rows = worst() if worst is not None else []  # asked for on every rank: they may have to put theirs together
        if rows and trainer.is_global_zero and module.feed is not None and module.feed.val is not None:
            write_worst(self._writer, rows, module.feed.val)

    def _is_best(self, values: Mapping[str, float]) -> bool:
        score = values.get(self._goal.name, math.nan)
        sign = 1 if self._goal.larger_is_better else -1
        if self._best is not None and not sign * score > sign * self._best:
            return False
        if not math.isnan(score):
            self._best = score
        return True

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        """Also those of validation: a score in which substitutes stand is not the score of the data."""
        if not trainer.is_global_zero or module.feed is None:
            return
        rows = []
        for loader, source in (
            (trainer.train_dataloader, module.feed.train),
            (trainer.val_dataloaders, module.feed.val),
        ):
            bad = getattr(loader, "bad_samples", ())
            rows += bad_sample_rows(bad, source) if bad else []
        if rows:
            self._writer.write_bad_samples(rows)

    def state_dict(self) -> dict[str, Any]:
        return {"best": self._best}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._best = state_dict["best"]


def bad_sample_rows(bad: Sequence[Any], source: Store) -> list[dict[str, Any]]:
    """Each sample once, with its name and the reason."""
    reasons = {int(one.index): one.reason for one in bad}
    return [{"index": index, "key": source.describe(index), "reason": reason} for index, reason in reasons.items()]


def write_worst(writer: RunWriter, rows: Sequence[Mapping[str, Any]], source: Store) -> None:
    """The samples that were answered most wrongly, each with its name and a small picture."""
    named = [{"key": _key(source, int(row["index"])), **row} for row in rows]
    sizes = [BOXES_PX if "boxes" in row else THUMBNAIL_PX for row in rows]
    writer.write_worst(named, [_thumbnail(source, int(row["index"]), px) for row, px in zip(rows, sizes, strict=True)])


def _key(source: Store, index: int) -> str:
    return str(source.annotations(index).get("key", index)) if source.knows_annotations else str(index)


def _thumbnail(source: Store, index: int, longest_px: int) -> bytes | None:
    from penstock.codecs.images import encode_image
    from penstock.codecs.opencv import opencv

    image = source.schema.image
    if image is None:
        return None
    try:
        pixels = np.asarray(source[index][image.name])
    except PenstockError:  # it was readable before; a picture that is gone is no reason to stop
        return None
    scale = longest_px / max(pixels.shape[:2])
    if scale < 1:
        size = (max(1, round(pixels.shape[1] * scale)), max(1, round(pixels.shape[0] * scale)))
        pixels = opencv().resize(pixels, size, interpolation=opencv().INTER_AREA)
    return encode_image(pixels, "jpeg", THUMBNAIL_QUALITY)


# What a Run was made with: machine, system and libraries, looked up without importing any of them.


LIBRARIES = ("penstock", "torch", "torchvision", "lightning", "torchmetrics", "kornia", "numpy", "pyarrow")


def environment() -> dict[str, Any]:
    """Facts that explain a result later; nothing that names the user."""
    return {
        "command": [os.path.basename(sys.argv[0]), *sys.argv[1:]],  # noqa: PTH119 - a name, also of a path that is none
        "python": platform.python_version(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "cores": cores(),
        "decoder": kernel.which(),
        "libraries": {name: version for name in LIBRARIES if (version := _version(name))},
    }


def now() -> str:
    """The time, as Runs write it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
