"""Means of losses over an epoch, weighted by samples, over all ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed


class Means:
    """Sums that stay on the device until they are asked for."""

    def __init__(self) -> None:
        self._sums: dict[str, torch.Tensor] = {}
        self._rows = 0

    def add(self, values: Mapping[str, torch.Tensor], rows: int) -> None:
        """The means of a batch of so many samples."""
        self._rows += rows
        for name, value in values.items():
            weighted = value.detach().float() * rows
            self._sums[name] = self._sums[name].to(weighted) + weighted if name in self._sums else weighted

    def state(self) -> dict[str, Any]:
        """The sums of this rank, as plain values."""
        return {"sums": {name: float(value) for name, value in self._sums.items()}, "rows": self._rows}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Means:
        """Go on where a state was taken."""
        means = cls()
        means._sums = {name: torch.tensor(value) for name, value in state["sums"].items()}
        means._rows = state["rows"]
        return means

    def compute(self) -> dict[str, float]:
        """The means over all ranks; every rank must ask, also one that saw nothing."""
        parts = _gathered(self.state())
        rows = sum(part["rows"] for part in parts)
        names = dict.fromkeys(name for part in parts for name in part["sums"])
        return {name: sum(part["sums"].get(name, 0.0) for part in parts) / rows for name in names} if rows else {}


def _gathered(own: Any) -> list[Any]:
    """What every rank has. Objects, because a rank that saw nothing does not know the names."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return [own]
    parts: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(parts, own)
    return parts
