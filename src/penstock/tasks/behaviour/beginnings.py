"""What streams begin with: weights of plain networks, and staying near them (L2-SP)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from penstock.errors import RecipeError
from penstock.tasks.behaviour.sizes import Size
from penstock.tasks.behaviour.streams import CompactStream, TwoStreams
from penstock.tasks.taken_weights import Taken, count_taken
from penstock.tasks.weight_files import Weights
from penstock.tasks.weights import differences, without_prefix

HEADS = ("fc.", "classifier.")
FIRST_LAYERS = ("conv1.weight", "stem.0.weight")


def load_streams(streams: TwoStreams, weights: Mapping[str, torch.Tensor], size: Size) -> Taken:
    """Both streams take over the weights of the plain network that they are made like; heads stay as they are."""
    taken = 0
    bodies: list[nn.Module] = [streams.spatial]
    if not isinstance(streams.motion, CompactStream):
        bodies.append(streams.motion)
    for body in bodies:
        own = {name: value for name, value in body.state_dict().items() if not name.startswith(HEADS)}
        given = _inflated(weights, own) if size.sees_clips else without_prefix(weights, own)
        given = {name: _fitted(name, value, own) for name, value in given.items() if not name.startswith(HEADS)}
        problems = differences(own, given, set(own))
        if problems:
            raise RecipeError(f"these weights are not of a {size.backbone}: {'; '.join(problems)}.")
        body.load_state_dict(given, strict=False)
        taken += count_taken(own, given)[0]
    words = ["the heads"] if len(bodies) > 1 else ["the motion stream", "the heads"]
    return Taken(taken, count_taken(streams.state_dict(), ())[1], (f"new: {' and '.join(words)}",))


def _fitted(name: str, value: torch.Tensor, own: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """The first layer for another number of channels: the mean over colours for each, as strong together as before."""
    wanted = own.get(name)
    if name not in FIRST_LAYERS or wanted is None or wanted.shape[1] == value.shape[1]:
        return value
    channels = wanted.shape[1]
    mean = value.mean(dim=1, keepdim=True) * value.shape[1] / channels
    return mean.expand(-1, channels, *mean.shape[2:]).clone()


def _inflated(weights: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor]) -> Weights:
    """Weights for pictures as weights for clips: the same at each moment, so a still clip looks like its picture."""
    flat = without_prefix(weights, {_flat_name(name): value for name, value in own.items()})
    names = {_flat_name(name): name for name in own}
    found = {}
    for name, value in flat.items():
        wanted = own.get(names.get(name, ""))
        if value.ndim == 4 and wanted is not None and wanted.ndim == 5:
            moments = wanted.shape[2]
            value = value[:, :, None].expand(-1, -1, moments, -1, -1) / moments
        found[names.get(name, name)] = value
    return found


def _flat_name(name: str) -> str:
    """The name that a weight of torchvision's video networks has in its networks for pictures."""
    name = name.replace("stem.0.", "conv1.").replace("stem.1.", "bn1.")
    for number in ("1", "2"):
        name = name.replace(f".conv{number}.0.", f".conv{number}.").replace(f".conv{number}.1.", f".bn{number}.")
    return name


class Anchors(nn.Module):
    """The weights that training began with. Moves with the network, and is no part of a checkpoint."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self._names = [name for name, value in network.named_parameters() if value.ndim > 1 and not _is_head(name)]
        found: dict[str, Any] = dict(network.named_parameters())
        for number, name in enumerate(self._names):
            self.register_buffer(f"anchor_{number}", found[name].detach().clone(), persistent=False)

    def distance(self, network: nn.Module) -> torch.Tensor:
        """Half the square of how far the weights have gone."""
        found: dict[str, Any] = dict(network.named_parameters())
        squares = [
            (found[name] - getattr(self, f"anchor_{number}")).square().sum()
            for number, name in enumerate(self._names)
            if found[name].requires_grad
        ]
        return torch.stack(squares).sum() / 2 if squares else torch.zeros(())


def _is_head(name: str) -> bool:
    return any(part in name for part in ("fc.", "_head.", "classifier."))
