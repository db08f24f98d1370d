"""Means of losses over an epoch, weighted by what each batch counts, over all ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed


class Means:
    """Sums that stay on the device until they are asked for."""

    def __init__(self) -> None:
        self._sums: dict[str, torch.Tensor] = {}
        self._weight: float | torch.Tensor = 0.0

    def add(self, values: Mapping[str, torch.Tensor], weight: float | torch.Tensor) -> None:
        """The means of a batch that counts so much: as many as its samples, where each counts the same."""
        self._weight = self._weight + (weight.detach() if isinstance(weight, torch.Tensor) else weight)
        for name, value in values.items():
            weighted = value.detach().float() * weight
            self._sums[name] = self._sums[name].to(weighted) + weighted if name in self._sums else weighted

    def state(self) -> dict[str, Any]:
        """The sums of this rank, as plain values."""
        return {"sums": {name: float(value) for name, value in self._sums.items()}, "rows": float(self._weight)}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Means:
        """Go on where a state was taken."""
        means = cls()
        means._sums = {name: torch.tensor(value) for name, value in state["sums"].items()}
        means._weight = float(state["rows"])
        return means

    def compute(self) -> dict[str, float]:
        """The means over all ranks, NaN where nothing counted; every rank must ask, also one that saw nothing."""
        parts = _gathered(self.state())
        weight = sum(part["rows"] for part in parts)
        names = dict.fromkeys(name for part in parts for name in part["sums"])
        sums = {name: sum(part["sums"].get(name, 0.0) for part in parts) for name in names}
        return {name: value / weight if weight else math.nan for name, value in sums.items()}


def _gathered(own: Any) -> list[Any]:
    """What every rank has. Objects, because a rank that saw nothing does not know the names."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return [own]
    parts: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(parts, own)
    return parts
