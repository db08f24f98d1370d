"""Weights that a detector begins with: those of a plain network for its backbone, or those of a whole detector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from penstock.errors import RecipeError
from penstock.tasks.detection.detector_files import CLASS_LOGITS, is_detector, read_detector
from penstock.tasks.detection.published_names import modern_names
from penstock.tasks.detection.pyramids import backbone_weight_name
from penstock.tasks.weight_files import Weights
from penstock.tasks.weights import IMAGENET, differences, pretrained_weights, without_prefix

BODY = "backbone.body."
# Layers of plain networks that a pyramid has no use for.
UNUSED = ("fc.", "classifier.", "features.18.")


def detector_weights(weights: str, backbone: str) -> Weights:
    """The weights that a word, a path or hf:// stands for; a whole detector knows its classes too."""
    return pretrained_weights(weights, backbone) if weights == IMAGENET else read_detector(weights)


def load_detector(
    network: nn.Module, weights: Mapping[str, torch.Tensor], backbone: str, classes: Sequence[str]
) -> None:
    """Take over weights whose names and shapes fit.

    Of a detector with other classes the box head stays, and of the class head all but the last layer; of that the
    outputs of classes with the same name. Of a plain network the backbone is taken.
    """
    own = network.state_dict()
    if is_detector(weights):
        given = _without_counts(modern_names(without_prefix(weights, own)), own)
        given = with_classes(given, own, getattr(weights, "classes", ()), classes)
        wanted = {name for name in own if not name.startswith(CLASS_LOGITS) or name in given}
    else:
        given = _without_counts(_of_body(weights, own, backbone), own)
        wanted = {name for name in own if name.startswith(BODY)}
    problems = differences(own, given, wanted)
    if problems:
        raise RecipeError(f"these weights are not of a {backbone} for detection: {'; '.join(problems)}.")
    network.load_state_dict(given, strict=False)


def with_classes(
    given: Weights, own: Mapping[str, torch.Tensor], theirs: Sequence[str], ours: Sequence[str]
) -> Weights:
    """The last layer of the class head for our classes: outputs of the same name, ours for the others."""
    if not theirs and _fits(given, own):
        return given
    same = [(theirs.index(name), place) for place, name in enumerate(ours) if name in theirs]
    if [(place, place) for place in range(len(theirs))] == same and len(theirs) == len(ours):
        return given
    if not theirs:
        return {name: value for name, value in given.items() if not name.startswith(CLASS_LOGITS)}
    layers = {name for name in given if name.startswith(CLASS_LOGITS)}
    return {
        name: _exchanged(own[name], value, same, len(ours), len(theirs)) if name in layers else value
        for name, value in given.items()
    }


def _fits(given: Weights, own: Mapping[str, torch.Tensor]) -> bool:
    return all(name in given and given[name].shape == own[name].shape for name in own if name.startswith(CLASS_LOGITS))


def _exchanged(
    own: torch.Tensor, given: torch.Tensor, same: list[tuple[int, int]], our_count: int, their_count: int
) -> torch.Tensor:
    """Outputs stand anchor by anchor, and for each anchor class by class."""
    mixed = own.clone().reshape(-1, our_count, *own.shape[1:])
    theirs = given.reshape(-1, their_count, *given.shape[1:])
    for their_place, our_place in same:
        mixed[:, our_place] = theirs[:, their_place]
    return mixed.reshape(own.shape)


def _of_body(weights: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor], backbone: str) -> Weights:
    start = "features." if backbone == "mobilenet_v2" else ""
    plain = {start + name.removeprefix(BODY): value for name, value in own.items() if name.startswith(BODY)}
    found = without_prefix(weights, plain)
    return {
        BODY + backbone_weight_name(backbone, name): value
        for name, value in found.items()
        if not name.startswith(UNUSED)
    }


def _without_counts(given: Weights, own: Mapping[str, torch.Tensor]) -> Weights:
    """Frozen normalisations have no count of batches; nothing is computed with it."""
    return {name: value for name, value in given.items() if name in own or not name.endswith("num_batches_tracked")}
