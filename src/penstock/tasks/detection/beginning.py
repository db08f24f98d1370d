"""Weights that a detector begins with: those of a plain network for its backbone, or those of a whole detector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from penstock.errors import RecipeError
from penstock.tasks.detection.anchors import PER_PLACE
from penstock.tasks.detection.detector_files import (
    CLASS_LOGITS,
    CLASS_SCORES,
    is_detector,
    is_two_stage,
    read_detector,
)
from penstock.tasks.detection.published_names import modern_names
from penstock.tasks.detection.pyramids import backbone_weight_name
from penstock.tasks.model_places import model_file
from penstock.tasks.taken_weights import (
    COUNTERS,
    Taken,
    compare_classes,
    count_taken,
    model_kind,
    need_model_of,
    need_same_setting,
)
from penstock.tasks.weight_files import Weights
from penstock.tasks.weights import IMAGENET, differences, pretrained_weights, without_prefix

BODY, PYRAMID = "backbone.body.", "backbone."
OUTPUTS = (CLASS_LOGITS, "roi_heads.box_predictor.")
# Layers of plain networks that a pyramid has no use for.
UNUSED = ("fc.", "classifier.", "features.18.")


def detector_weights(weights: str, backbone: str) -> Weights:
    """The weights that a word, a path or hf:// stands for; a whole detector knows its classes too."""
    if weights == IMAGENET:
        return pretrained_weights(weights, backbone)
    found = read_detector(model_file(weights))
    need_model_of(found, "detection", weights)
    need_same_setting(found, "backbone", backbone, weights)
    return found


def load_detector(
    network: nn.Module, weights: Mapping[str, torch.Tensor], backbone: str, classes: Sequence[str]
) -> Taken:
    """Take over weights whose names and shapes fit, and say what was taken.

    Of a detector with other classes the box head stays, and of the class head all but the last layer; of that the
    outputs of classes with the same name. Of a detector of the other architecture the pyramid is taken, of a plain
    network the backbone.
    """
    own = network.state_dict()
    given, wanted = _given(own, weights, backbone, classes)
    problems = differences(own, given, wanted)
    if problems:
        raise RecipeError(f"these weights are not of a {backbone} for detection: {'; '.join(problems)}.")
    network.load_state_dict(given, strict=False)
    return _taken(own, given, weights, classes)


def _taken(
    own: Mapping[str, torch.Tensor], given: Weights, weights: Mapping[str, torch.Tensor], classes: Sequence[str]
) -> Taken:
    count, total = count_taken(own, given)
    has_outputs = any(name.startswith(OUTPUTS) for name in given)
    theirs = getattr(weights, "classes", ()) if has_outputs else ()
    compared = compare_classes(theirs, classes)
    new: tuple[str, ...] = ()
    if not any(name.startswith("backbone.fpn.") for name in given):
        new = ("pyramid and heads are new (the file has a plain network)",)
    elif not has_outputs:
        new = ("the outputs are new (the file has others, or does not name its classes)",)
    elif theirs and not compared.kept:
        count -= sum(name.startswith(CLASS_LOGITS) for name in given)
        new = ("the outputs are new (none of the classes has the same name there)",)
    unused = max(0, sum(not name.endswith(COUNTERS) for name in weights) - count)
    return Taken(count, total, new, *compared, unused, model_kind(weights))


def _given(
    own: Mapping[str, torch.Tensor], weights: Mapping[str, torch.Tensor], backbone: str, classes: Sequence[str]
) -> tuple[Weights, set[str]]:
    """The weights under our names, and the names that must be among them."""
    if not (is_detector(weights) or is_two_stage(weights)):
        return _without_counts(_of_body(weights, own, backbone), own), {name for name in own if name.startswith(BODY)}
    given = _without_counts(modern_names(without_prefix(weights, own)), own)
    if is_two_stage(own) != is_two_stage(given):
        given = {name: value for name, value in given.items() if name.startswith(PYRAMID)}
        return given, {name for name in own if name.startswith(PYRAMID)}
    given = with_classes(given, own, getattr(weights, "classes", ()), classes)
    return given, {name for name in own if not name.startswith(OUTPUTS) or name in given}


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
        return {name: value for name, value in given.items() if not name.startswith(OUTPUTS)}
    return {
        name: _exchanged(name, own[name], value, same) if name.startswith(OUTPUTS) and name in own else value
        for name, value in given.items()
    }


def _fits(given: Weights, own: Mapping[str, torch.Tensor]) -> bool:
    return all(name in given and given[name].shape == own[name].shape for name in own if name.startswith(OUTPUTS))


def _exchanged(name: str, own: torch.Tensor, given: torch.Tensor, same: list[tuple[int, int]]) -> torch.Tensor:
    """Our outputs, with theirs for classes of the same name."""
    if name.startswith(CLASS_LOGITS):  # anchor by anchor, and for each anchor class by class
        rows = [PER_PLACE, -1, *own.shape[1:]]
        mixed, theirs = own.clone().reshape(rows), given.reshape(rows)
        for their_place, our_place in same:
            mixed[:, our_place] = theirs[:, their_place]
        return mixed.reshape(own.shape)
    # Nothing is the first class, and each class has one score or four sides.
    rows = [-1, 1 if name.startswith(CLASS_SCORES) else 4, *own.shape[1:]]
    mixed, theirs = own.clone().reshape(rows), given.reshape(rows)
    for their_place, our_place in [(-1, -1), *same]:
        mixed[our_place + 1] = theirs[their_place + 1]
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
