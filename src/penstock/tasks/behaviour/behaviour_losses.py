"""Losses of behaviours: element by element where several may be at once, or of one behaviour a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from penstock.tasks.losses import SampleLosses, multi_label_losses, single_label_losses

if TYPE_CHECKING:
    from penstock.tasks.behaviour.behaviour import Behaviour


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
