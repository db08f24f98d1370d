"""Training that starts from known weights: of plain networks for the streams, or of a whole behaviour model.

Behaviours are found by their names: what the model knows of those that it has is kept, the others begin as ever. The
heads of the sequence stage come from the frames stage before it, since they belong to the features that it has learned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from penstock.errors import OptionError
from penstock.tasks.behaviour.behaviour import Behaviour
from penstock.tasks.behaviour.networks import WIDTH, CompactStream, TwoStreams
from penstock.tasks.behaviour.settings import SIZES, Size
from penstock.tasks.checkpoints import place_of
from penstock.tasks.weights import (
    IMAGENET,
    PLAIN,
    Classes,
    KnownWeights,
    Taken,
    Weights,
    compare_classes,
    count_taken,
    differences,
    model_kind,
    need_model_of,
    need_same_setting,
    pretrained_weights,
    with_known_classes,
    without_prefix,
)

# What streams begin with: weights of plain networks, and staying near them (L2-SP).


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
            raise OptionError(f"these weights are not of a {size.backbone}: {'; '.join(problems)}.")
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


WHOLE = ("behaviour", "behaviour_frames")  # the second has no sequence network yet
SINGLE_STAGES = ("behaviour_flow", "behaviour_sequence")
NO_CLASSES = Classes()
NETWORK = "network."  # before the names of weights in files of checkpoints
WARM = "warm."  # before the names of a model that training begins with, beside those of the stage before
STREAM_HEADS = {"spatial_head.weight": (0, 0), "motion_head.weight": (0, 0), "bias": (0, 0)}
ALONE = ("alone.weight", "alone.bias")
# Rows of outputs, and columns behind those of the features with one for each behaviour.
SEQUENCE_HEADS = {
    **dict.fromkeys((*ALONE, "last.weight", "last.bias"), (0, 0)),
    **dict.fromkeys(("temporal.enter.weight", "temporal.gru.weight_ih_l0"), (1, WIDTH)),
    "temporal.gru.weight_ih_l0_reverse": (1, WIDTH),
}


def warm_weights(behaviour: Behaviour) -> KnownWeights | None:
    """The model of behaviours that `weights` names; None where it names something else, or nothing."""
    if behaviour.weights is None or behaviour.weights == IMAGENET:
        return None
    found = _read(behaviour, behaviour.weights)
    if found.kind not in WHOLE:
        return None
    return found.named({name.removeprefix(NETWORK): value for name, value in found.items()})


def plain_weights(behaviour: Behaviour) -> Mapping[str, torch.Tensor]:
    """The plain network that `weights` names for the streams; empty where it names none."""
    if behaviour.weights is None:
        return {}
    if behaviour.weights == IMAGENET:
        return pretrained_weights(IMAGENET, SIZES[behaviour.size].backbone)
    found = _read(behaviour, behaviour.weights)
    need_same_setting(found, "backbone", SIZES[behaviour.size].backbone, behaviour.weights)
    return found


def _read(behaviour: Behaviour, place: str) -> KnownWeights:
    """What a path or an address holds; models that do not fit are errors."""
    given = pretrained_weights(place_of(place), SIZES[behaviour.size].backbone)
    found = given if isinstance(given, KnownWeights) else KnownWeights(given)
    if found.kind in SINGLE_STAGES:
        stage = found.kind.removeprefix("behaviour_")
        raise OptionError(
            f"weights={place!r} is a checkpoint of the stage {stage} alone. Name the Run, or its best checkpoint."
        )
    need_model_of(found, behaviour.kind, place, (*PLAIN, *WHOLE))
    if found.kind in WHOLE:
        need_same_setting(found, "size", behaviour.size, place)
        if not SIZES[behaviour.size].sees_clips:  # else the first layer is the same for any number
            need_same_setting(found, "frames", behaviour.frames, place)
    return found


def stage_weights(weights: KnownWeights, begun: Mapping[str, torch.Tensor]) -> KnownWeights:
    """A model to begin with, beside the weights of the stage before."""
    return weights.named({**{WARM + name: value for name, value in weights.items()}, **begun})


def is_warm(weights: Mapping[str, torch.Tensor]) -> bool:
    """Whether these are weights of a whole model."""
    return model_kind(weights) in WHOLE


def load_motion(network: Any, weights: Mapping[str, torch.Tensor]) -> Taken:
    """Take over the motion network."""
    return replace(_load(network.motion, _part(weights, "motion."), "motion"), model=model_kind(weights))


def load_warm_streams(streams: nn.Module, weights: Mapping[str, torch.Tensor], classes: Sequence[str]) -> Taken:
    """Take over both streams, and of their heads what belongs to behaviours with the same name."""
    theirs = _classes(weights)
    own = streams.state_dict()
    given = with_known_classes(_part(weights, "frames."), own, STREAM_HEADS, theirs, classes)
    return replace(_load(streams, given, "frames", compare_classes(theirs, classes)), model=model_kind(weights))


def load_warm_sequence(sequence: nn.Module, weights: Mapping[str, torch.Tensor], behaviour: Behaviour) -> Taken:
    """Take over the sequence network, but for the heads that the frames stage brings."""
    theirs, own = _classes(weights), sequence.state_dict()
    given = _part(weights, "sequence.")
    kind = getattr(weights, "said", {}).get("sequence", behaviour.sequence)
    if not given or kind != behaviour.sequence:
        why = f"it is a {kind} there and a {behaviour.sequence} here" if given else "the file has none"
        new = (f"the sequence network is new ({why})",)
        return Taken(0, count_taken(own, ())[1], new, model=model_kind(weights))
    given = with_known_classes(given, own, SEQUENCE_HEADS, theirs, behaviour.behaviours)
    taken = _load(sequence, given, "sequence", compare_classes(theirs, behaviour.behaviours))
    heads = sum(name in own for name in ALONE)
    words = "the heads over single frames come from the frames stage"
    return replace(taken, tensors_taken=taken.tensors_taken - heads, new=(words,), model=model_kind(weights))


def _load(part: nn.Module, given: Weights, name: str, classes: Classes = NO_CLASSES) -> Taken:
    own = part.state_dict()
    problems = differences(own, given, set(own))
    if problems:
        raise OptionError(f"these weights are not of the same {name} network: {'; '.join(problems)}.")
    part.load_state_dict(given, strict=False)
    return Taken(*count_taken(own, given), (), *classes)


def _part(weights: Mapping[str, torch.Tensor], part: str) -> Weights:
    start = WARM + part
    return {name.removeprefix(start): value for name, value in weights.items() if name.startswith(start)}


def _classes(weights: Mapping[str, torch.Tensor]) -> tuple[str, ...]:
    return tuple(getattr(weights, "classes", ()))
