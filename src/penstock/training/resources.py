"""What `auto` becomes, from the data and the device; what a training will need; what this machine can train on."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.accelerators import AcceleratorRegistry

from penstock.errors import OptionError, TrainingError, nearest
from penstock.training.options import AUTO, TrainOptions
from penstock.wording import counted

CPU_BATCH, DEVICE_BATCH = 32, 64
FEWEST_STEPS = 8  # of an epoch: a small set is not learned in one step
SMALLEST_BATCH = 4
# Numbers of float32 for each weight: itself and its gradient, and what the optimizer keeps.
KEPT_FOR_WEIGHT = {"sgd": 1, "adam": 2, "adamw": 2}
MEGABYTE = 1e6


def chosen_batch_size(options: TrainOptions, samples: int, device_type: str) -> int:
    """Samples of a step over all devices."""
    if options.batch_size != AUTO:
        return int(options.batch_size)
    most = CPU_BATCH if device_type == "cpu" else DEVICE_BATCH
    size = SMALLEST_BATCH
    while size * 2 <= min(most, samples // FEWEST_STEPS):
        size *= 2
    return size


def chosen_precision(options: TrainOptions, device_type: str) -> str:
    """As Lightning spells it; half precision pays on CUDA alone."""
    if options.precision == AUTO:
        if device_type != "cuda":
            return "32-true"
        return "bf16-mixed" if torch.cuda.is_bf16_supported() else "16-mixed"
    return {"32": "32-true", "16": "16-mixed", "bf16": "bf16-mixed"}[options.precision]


@dataclass(frozen=True)
class Needs:
    """Bytes that a training takes, beside the batches and what the network keeps of them."""

    weights: int
    memory: int
    checkpoint: int
    disk: int


def needs_of(network: torch.nn.Module, options: TrainOptions) -> Needs:
    """From the weights of a network."""
    weights = sum(value.nbytes for value in network.state_dict().values())
    trained = sum(one.nbytes for one in network.parameters() if one.requires_grad)
    kept = trained * KEPT_FOR_WEIGHT[options.optimizer]
    checkpoint = weights + kept
    # One more: a new checkpoint is complete before it takes the place of an old one.
    count = options.save_top_k + 2 if options.checkpoints else 0
    return Needs(weights, weights + trained + kept, checkpoint, checkpoint * count)


def check_disk(needs: Needs, folder: Path) -> int:
    """The bytes that are free where a Run is written; too few are an error before anything is done."""
    place = next(one for one in (folder.resolve(), *folder.resolve().parents) if one.exists())
    free = shutil.disk_usage(place).free
    if needs.disk > free:
        raise TrainingError(
            f"checkpoints need {needs.disk / MEGABYTE:,.0f} MB, and {place} has {free / MEGABYTE:,.0f} MB free. Free "
            "some space, choose another run.folder, or keep fewer (save_top_k, checkpoints: off)."
        )
    return free


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that a device, or the machine, had no memory left."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    words = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, RuntimeError) and any(word in str(error).lower() for word in words)


def out_of_memory(error: BaseException, batch_size: int, options: TrainOptions) -> TrainingError:
    """Which setting to lower."""
    halves = "" if options.batch_size == AUTO else " With train.batch_size: auto, less is put on the device at a time."
    also = "" if options.precision in ("16", "bf16") else ", train.precision (bf16 needs half as much)"
    return TrainingError(
        f"out of memory with {counted(batch_size, 'sample')} on the device: {_first_line(error)}. Lower "
        f"train.batch_size{also}, "
        f"or the size of the images (model.size).{halves}"
    )


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def device_type_of(trainer: Any) -> str:
    kind: str = trainer.strategy.root_device.type
    return kind


# What this machine can train on, and what is said where it cannot.


GPU = "gpu"  # Lightning's word for the first of these that is there
GPUS = ("cuda", "mps")


def need_accelerator(name: Any) -> None:
    """Refuse an accelerator that is not here, before a Run is begun; an object of the user's own is taken as it is."""
    if not isinstance(name, str) or name == AUTO:
        return
    known = [GPU, *AcceleratorRegistry.available_accelerators()]  # of all that Lightning has ever heard of
    there = accelerators_here()
    if name in there:
        return
    what = "is not on this machine, or torch cannot use it" if name in known else "is no accelerator"
    hint = "" if name in known else nearest(name, [AUTO, *known])
    raise OptionError(
        f"train.accelerator={name!r} {what}.{hint} There is: {', '.join(there)}. "
        f"Use train.accelerator={there[0]}, or {AUTO} for the best that is there."
    )


def accelerators_here() -> list[str]:
    """The names of those that can be used, GPUs first."""
    names = AcceleratorRegistry.available_accelerators()
    there = [name for name in names if AcceleratorRegistry[name]["accelerator"].is_available()]
    gpus = [name for name in GPUS if name in there]
    return [*([GPU] if gpus else []), *gpus, *(name for name in there if name not in gpus)]
