"""A training set that stays in the memory of the device: made once, then only numbers of samples are fed.

once    evaluation flow (nothing random) ─► tensors of all samples on the device
epoch   numbers in the order of the seed ─► rows of those tensors ─► augmentation on the device
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from penstock.errors import RecipeError
from penstock.flow.budget import free_bytes
from penstock.flow.flow import Flow
from penstock.samples import Field, Raw, Sample, Schema, Store
from penstock.training.loaders import FlowLoader

if TYPE_CHECKING:
    from penstock.training.feeds import Rank

SHARE_OF_FREE = 0.5  # the network, its gradients and activations need the rest
POSITION = "position"


class Positions(Store):
    """A source of nothing but numbers."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._schema = Schema((Field(POSITION, "number", "int64"),))

    def __len__(self) -> int:
        return self.count

    def read(self, index: int) -> Raw:
        return Raw(index, None)

    def decode(self, raw: Raw) -> Sample:
        return {POSITION: np.int64(raw.index)}

    def gather(self, name: str, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.asarray(indices, np.int64)

    def fingerprint(self) -> str:
        return f"positions {self.count}"


def preloaded(flow: Flow, count: int, batch_size: int, seed: int, rank: Rank) -> FlowLoader:
    """The loader of a training set that was moved to the device, if it fits; `flow` gives it in batches."""
    device = torch.device("cpu") if rank.device is None else torch.device(rank.device)
    kept = _moved(flow, count, device)
    order = Flow(Positions(count), seed).shuffle().batch(batch_size).shard(rank.number, rank.count)

    def rows(batch: dict[str, Any]) -> dict[str, Any]:
        return {name: _rows(values, batch[POSITION]) for name, values in kept.items()}

    return FlowLoader(order, finish=rows, bad_before=flow.bad_samples)


def _moved(flow: Flow, count: int, device: torch.device) -> dict[str, Any]:
    """Every batch on the device, joined; measured with the first one before anything is kept."""
    pieces: list[dict[str, Any]] = []
    for batch in flow.to_torch():
        if not pieces:
            _check_room(batch, count, device)
        pieces.append({name: _copied(value, device) for name, value in batch.items()})
    flow.close()
    return {name: _joined([piece.pop(name) for piece in pieces]) for name in list(pieces[0])}


def _check_room(batch: dict[str, Any], count: int, device: torch.device) -> None:
    fields = [value if isinstance(value, list) else [value] for value in batch.values()]
    tensors = [value for values in fields for value in values if isinstance(value, torch.Tensor)]
    needed = sum(tensor.nbytes for tensor in tensors) / len(batch["index"]) * count
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else free_bytes()
    if needed > free * SHARE_OF_FREE:
        raise RecipeError(
            f'preload="device": the training set needs {needed / 1e9:.2g} GB, and half of what {device} has free is '
            f"{free * SHARE_OF_FREE / 1e9:.2g} GB. Train without preload, or with smaller images."
        )


def _copied(value: Any, device: torch.device) -> Any:
    # A copy on the CPU too: the batch lies in a slot that is written again.
    if isinstance(value, list):
        return [_copied(one, device) for one in value]
    return value.to(device, copy=True) if isinstance(value, torch.Tensor) else value


def _joined(pieces: list[Any]) -> Any:
    if isinstance(pieces[0], torch.Tensor):
        return torch.cat(pieces)
    return [value for piece in pieces for value in piece]


def _rows(values: Any, positions: torch.Tensor) -> Any:
    if isinstance(values, torch.Tensor):
        return values[positions.to(values.device)]
    return [values[position] for position in positions.tolist()]
