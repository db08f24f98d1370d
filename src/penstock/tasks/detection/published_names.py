"""Names of weights as others have written them, and as torchvision and Penstock have them now."""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch

from penstock.tasks.weight_files import Weights

# The heads of torchvision before 0.13 numbered activations too.
OLD_HEAD = re.compile(r"(head\.(?:classification|regression)_head\.conv)\.(\d)\.(weight|bias)")
PARTS = ("backbone.", "head.")


def modern_names(weights: Mapping[str, torch.Tensor]) -> Weights:
    """Names of heads as torchvision has them now."""

    def renamed(name: str) -> str:
        return OLD_HEAD.sub(lambda found: f"{found[1]}.{int(found[2]) // 2}.0.{found[3]}", name)

    return {renamed(name): value for name, value in weights.items()}


def names_of_ours(weights: Mapping[str, torch.Tensor]) -> Weights:
    """Weights of a published detector with our names: without what stands before them, and without counts of batches,
    which frozen normalisations do not have."""
    found: Weights = {}
    for name, value in modern_names(weights).items():
        start = min((place for place in (name.find(part) for part in PARTS) if place >= 0), default=0)
        if not name.endswith("num_batches_tracked"):
            found[name[start:]] = value
    return found
