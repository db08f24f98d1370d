"""What is said before a training starts: what it learns from, what it needs, and what was chosen."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import PenstockError
from penstock.flow.budget import free_bytes
from penstock.packing.reader import Pack
from penstock.samples import Store, Subset
from penstock.tasks.task import batched
from penstock.training.data_splits import TrainingData
from penstock.training.resources import MEGABYTE, Needs
from penstock.wording import counted

if TYPE_CHECKING:
    from penstock.tasks.task import Task

SHOWN_CLASSES = 12
COMPARED_SAMPLES = 48  # enough to tell a factor, and done within a second
NOTABLE_GAIN = 1.15


def data_line(task: Task, data: TrainingData) -> str:
    """Samples, classes and the share of negatives."""
    val = "none for validation" if data.val is None else f"{len(data.val):,} for validation"
    classes = task.classes
    names = ", ".join(classes[:SHOWN_CLASSES]) + (" …" if len(classes) > SHOWN_CLASSES else "")
    share = negative_share(data.train)
    lacking = "boxes" if any(field.kind == "boxes" for field in data.train.schema.fields) else "label"
    negatives = f"; {share:.1%} of the samples have no {lacking}" if share else ""
    samples = counted(len(data.train), "sample")
    return f"{samples} for training, {val} ({data.how}); {counted(len(classes), 'class')}: {names}{negatives}."


def negative_share(source: Store) -> float | None:
    """The share of samples with nothing on them; None where the source cannot tell without reading all."""
    inner, indices = (source.source, source.indices) if isinstance(source, Subset) else (source, None)
    counts = inner.label_counts()
    if counts is not None:
        is_empty = counts.sum(axis=1) == 0
    else:
        field = source.schema.label
        if field is None:
            return None
        try:
            is_empty = inner.column(field.name) < 0
        except KeyError:
            return None
    chosen = is_empty if indices is None else is_empty[indices]
    return float(chosen.mean()) if len(chosen) else None


def needs_line(needs: Needs, disk_free: int, batch_size: int) -> str:
    """Disk and memory."""
    return (
        f"needs {needs.disk / MEGABYTE:,.0f} MB of disk for checkpoints ({disk_free / MEGABYTE:,.0f} MB free) and "
        f"{needs.memory / MEGABYTE:,.0f} MB of memory for weights, gradients and optimizer, plus activations "
        f"of {counted(batch_size, 'sample')}; the feed may take half of the {free_bytes() / MEGABYTE:,.0f} MB free."
    )


def choices_line(chosen: Mapping[str, Any]) -> str:
    """What a training is made with; how many samples are on the device only where that is another number."""
    words = {"batch_size": "batch size", "learning_rate": "learning rate", "on_device": "on the device at a time"}
    told = {name: value for name, value in chosen.items() if name != "on_device" or value != chosen["batch_size"]}
    return ", ".join(f"{words.get(name, name)} {value}" for name, value in told.items()) + "."


def pack_line(task: Task, source: Store, seed: int) -> str | None:
    """How much faster a pack would feed, measured on some samples; None where that is not worth a word."""
    inner = source.source if isinstance(source, Subset) else source
    if isinstance(inner, Pack) or len(source) < COMPARED_SAMPLES or not getattr(task, "is_packable", True):
        return None
    few = Subset(source, np.linspace(0, len(source) - 1, COMPARED_SAMPLES).astype(np.int64))
    try:
        with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
            gain = _gain(task, few, Path(folder) / "few.pack", seed)
    except (PenstockError, OSError):  # what cannot be packed is told by packing, and hinders no training
        return None
    if gain < NOTABLE_GAIN:
        return f"a pack of these data would be about as fast ({gain:.1f} ×, on {COMPARED_SAMPLES} samples)."
    return f"a pack would feed {gain:.1f} × as fast (measured on {COMPARED_SAMPLES} samples): see penstock pack."


def _gain(task: Task, source: Store, path: Path, seed: int) -> float:
    from penstock.packing.writer import pack

    packed = pack(source, path, progress=False, workers=1)
    # The pack first: what the disk has to be waited for must not look like the slowness of files.
    seconds = [_seconds(task, one, seed) for one in (source, packed, source, packed)]
    return min(seconds[0], seconds[2]) / max(min(seconds[1], seconds[3]), 1e-9)


def _seconds(task: Task, source: Store, seed: int) -> float:
    flow = batched(task, task.training_flow(source, seed=seed, workers=0), COMPARED_SAMPLES // 2)
    started = time.perf_counter()
    for _ in flow:
        pass
    return time.perf_counter() - started
