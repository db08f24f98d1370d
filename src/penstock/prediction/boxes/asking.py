"""Asking a network about windows: in groups of one shape, with the precision that the device is fast with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import islice
from typing import Any

import numpy as np
import torch

from penstock.prediction.boxes.options import Precision
from penstock.prediction.boxes.scenes import Shown
from penstock.prediction.models import Model
from penstock.tasks.detection.answers import Found


def computes_bfloat16(device: torch.device) -> bool:
    """Whether a device multiplies bfloat16 by itself, and not by way of float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":
        return False
    checks = (getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    return any(check is not None and check() for check in checks)


def in_precision(precision: Precision, device: torch.device) -> Any:
    """A context in which the network computes."""
    is_short = precision == "bf16" or (precision == "auto" and computes_bfloat16(device))
    return torch.autocast(device.type, torch.bfloat16) if is_short else nullcontext()


def in_groups(shown: Iterable[Shown], size: int) -> Iterator[list[Shown]]:
    """As many windows as the network sees at a time; the last group may be smaller."""
    items = iter(shown)
    while group := list(islice(items, size)):
        yield group


def ask(model: Model, shown: Iterable[Shown], precision: Precision) -> Iterator[tuple[int, Found]]:
    """The number of each window, and every box with score enough, unsuppressed, in pixels that it was shown."""
    task: Any = model.task
    size = model.group_rows
    network = model.network.to(memory_format=torch.channels_last)
    for group in in_groups(shown, size):
        # Filled up to one shape: libraries sum in another order for other shapes.
        filled = [group[min(place, len(group) - 1)].pixels for place in range(size)]
        images = torch.from_numpy(np.stack(filled)).to(model.device)
        with torch.inference_mode(), in_precision(precision, model.device):
            seen = network(task.inputs(images))
        with torch.inference_mode():
            proposed = task.proposed(network, seen, scale=task.input_scale)
        for one, found in zip(group, proposed, strict=False):
            yield one.number, Found(*(value.cpu() for value in found))
