"""Losses of classification, for each sample and as their weighted mean. A label of −1 counts as nothing."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch.nn import functional


class SampleLosses(NamedTuple):
    """The loss of every sample, and how much each counts in the mean."""

    losses: torch.Tensor
    weights: torch.Tensor

    def mean(self) -> torch.Tensor:
        """The weighted mean; zero, with a gradient of zero, where nothing is labelled."""
        total = self.weights.sum()
        return (self.losses * self.weights).sum() / torch.where(total > 0, total, torch.ones_like(total))


def single_label_losses(
    logits: torch.Tensor,
    labels: torch.Tensor,
    *,
    class_weights: torch.Tensor | None = None,
    focal: float = 0.0,
    label_smoothing: float = 0.0,
) -> SampleLosses:
    """Cross entropy; with `focal` > 0 samples that are answered well count less, by (1 − p)^focal."""
    logits = logits.float()
    known = labels >= 0
    targets = labels.clamp(min=0)
    losses = functional.cross_entropy(logits, targets, reduction="none", label_smoothing=label_smoothing)
    if focal:
        right = logits.softmax(dim=1).gather(1, targets[:, None])[:, 0]
        losses = losses * _focus(right, focal)
    weights = known.to(losses.dtype)
    if class_weights is not None:
        weights = weights * class_weights.to(weights)[targets]
    return SampleLosses(losses * known, weights)


def multi_label_losses(
    logits: torch.Tensor,
    labels: torch.Tensor,
    *,
    class_weights: torch.Tensor | None = None,
    focal: float = 0.0,
    label_smoothing: float = 0.0,
) -> SampleLosses:
    """Binary cross entropy over the labels that are known; `class_weights` are those of what is there."""
    logits = logits.float()
    known = (labels >= 0).to(logits.dtype)
    present = (labels > 0).to(logits.dtype)
    targets = present * (1 - label_smoothing) + label_smoothing / 2
    losses = functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    if focal:
        probabilities = logits.sigmoid()
        losses = losses * _focus(torch.where(present > 0, probabilities, 1 - probabilities), focal)
    if class_weights is not None:
        losses = losses * torch.where(present > 0, class_weights.to(losses), torch.ones_like(losses))
    counts = known.sum(dim=1)
    means = (losses * known).sum(dim=1) / counts.clamp(min=1)
    return SampleLosses(means, counts)


def _focus(right: torch.Tensor, focal: float) -> torch.Tensor:
    # Clamped, because the slope of x^γ at zero has no end for γ below one.
    return (1 - right).clamp(min=1e-6) ** focal
