"""Losses of behaviour and of motion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import avg_pool2d, interpolate

from penstock.tasks.behaviour.networks import moved
from penstock.tasks.losses import SampleLosses, multi_label_losses, single_label_losses

if TYPE_CHECKING:
    from penstock.tasks.behaviour.behaviour import Behaviour


# Losses of behaviours: element by element where several may be at once, or of one behaviour a frame.


def behaviour_losses(task: Behaviour, logits: torch.Tensor, labels: torch.Tensor) -> SampleLosses:
    """Of rows × behaviours, and labels of 1, 0 and −1; what is not labelled counts for nothing."""
    weights = torch.tensor(task.class_weights, device=logits.device)
    options = {"class_weights": weights, "focal": task.focal, "label_smoothing": task.label_smoothing}
    if not task.exclusive:
        return multi_label_losses(logits, labels, **options)
    return single_label_losses(logits, single_labels(labels, task.background), **options)


def single_labels(labels: torch.Tensor, background: int | None) -> torch.Tensor:
    """The behaviour of each row; background where no other is, −1 where that is not known."""
    is_there = labels == 1
    chosen = is_there.long().argmax(dim=1)
    is_known = (labels >= 0).all(dim=1)
    nothing = torch.full_like(chosen, -1 if background is None else background)
    nothing = torch.where(is_known, nothing, torch.full_like(chosen, -1))
    return torch.where(is_there.any(dim=1), chosen, nothing)


# How wrong a motion is, without labels: does the second frame, moved back by it, look like the first?
#
# photometric   the difference of pixels, softened so that a few that cannot match do not rule (Charbonnier)
# structure     how unlike small neighbourhoods are (SSIM, without brightness)
# smoothness    neighbours should move alike, except across edges of the picture
#
# Pixels that changed count more: in most videos of behaviour nearly all of the picture stands still, and zero is
# right.


SOFTNESS, POWER = 1e-3, 0.45
STRUCTURE_SIDE = 3
STRUCTURE_CONSTANT = 0.05  # of the variance of the whole set, which is one: below it is noise
SMOOTHNESS = 0.05
SCALE_WEIGHTS = (1.0, 0.5, 0.25)  # the finest is what the streams get
CHANGE_WEIGHT = 4.0


def motion_losses(first: torch.Tensor, second: torch.Tensor, flows: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
    """The loss of each pair, by name, of normalised frames and the motions at each scale; `loss` is the sum."""
    parts: dict[str, torch.Tensor] = {}
    for flow, weight in zip(flows, SCALE_WEIGHTS, strict=True):
        one, other = (_shrunk(frames, flow) for frames in (first, second))
        for name, values in _at_scale(one, other, flow).items():
            parts[name] = parts.get(name, torch.zeros((), device=flow.device)) + weight * values
    return {"loss": torch.stack(list(parts.values())).sum(dim=0), **parts}


def _at_scale(first: torch.Tensor, second: torch.Tensor, flow: torch.Tensor) -> dict[str, torch.Tensor]:
    rebuilt = moved(second, flow)
    counts = _change(first, second)
    photometric = _soft(first - rebuilt).mean(dim=1, keepdim=True)
    structure = _unlikeness(first, rebuilt)
    return {
        "photometric": (photometric * counts).mean(dim=(1, 2, 3)),
        "structure": (structure * counts).mean(dim=(1, 2, 3)),
        "smoothness": SMOOTHNESS * _roughness(flow, first),
    }


def _shrunk(frames: torch.Tensor, flow: torch.Tensor) -> torch.Tensor:
    return interpolate(frames, size=flow.shape[2:], mode="area")


def _change(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """How much each pixel counts; one in the mean of each picture."""
    change = avg_pool2d((first - second).abs().mean(dim=1, keepdim=True), 3, stride=1, padding=1)
    share = change / change.mean(dim=(1, 2, 3), keepdim=True).clamp(min=1e-6)
    return (1 + CHANGE_WEIGHT * share) / (1 + CHANGE_WEIGHT)


def _soft(difference: torch.Tensor) -> torch.Tensor:
    return (difference**2 + SOFTNESS**2) ** POWER


def _unlikeness(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """1 − SSIM of contrast and structure in each neighbourhood, halved: from 0 to 1."""

    def mean(values: torch.Tensor) -> torch.Tensor:
        return avg_pool2d(values, STRUCTURE_SIDE, stride=1, padding=STRUCTURE_SIDE // 2, count_include_pad=False)

    one, other = mean(first), mean(second)
    spread = mean(first**2) - one**2 + mean(second**2) - other**2
    together = mean(first * second) - one * other
    alike = (2 * together + STRUCTURE_CONSTANT) / (spread + STRUCTURE_CONSTANT)
    return ((1 - alike) / 2).clamp(0, 1).mean(dim=1, keepdim=True)


def _roughness(flow: torch.Tensor, frames: torch.Tensor) -> torch.Tensor:
    """How much motion differs between neighbours; less counts where the picture has an edge."""
    total = torch.zeros(len(flow), device=flow.device)
    for axis in (2, 3):
        step = _soft(flow.diff(dim=axis)).mean(dim=1)
        edge = torch.exp(-frames.diff(dim=axis).abs().mean(dim=1))
        total = total + (step * edge).mean(dim=(1, 2))
    return total
