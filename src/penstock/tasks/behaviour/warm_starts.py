"""Training that begins with a whole model of behaviours: its motion network, its streams, its sequence network.

Behaviours are found by their names: what the model knows of those that it has is kept, the others begin as ever. The
heads of the sequence stage come from the frames stage before it, since they belong to the features that it has learned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from penstock.errors import RecipeError
from penstock.tasks.behaviour.behaviour import Behaviour
from penstock.tasks.behaviour.sequence import WIDTH
from penstock.tasks.behaviour.sizes import SIZES
from penstock.tasks.model_places import place_of
from penstock.tasks.taken_weights import (
    PLAIN,
    Classes,
    Taken,
    compare_classes,
    count_taken,
    model_kind,
    need_model_of,
    need_same_setting,
    with_known_classes,
)
from penstock.tasks.weight_files import KnownWeights, Weights
from penstock.tasks.weights import IMAGENET, differences, pretrained_weights

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
        raise RecipeError(
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
        raise RecipeError(f"these weights are not of the same {name} network: {'; '.join(problems)}.")
    part.load_state_dict(given, strict=False)
    return Taken(*count_taken(own, given), (), *classes)


def _part(weights: Mapping[str, torch.Tensor], part: str) -> Weights:
    start = WARM + part
    return {name.removeprefix(start): value for name, value in weights.items() if name.startswith(start)}


def _classes(weights: Mapping[str, torch.Tensor]) -> tuple[str, ...]:
    return tuple(getattr(weights, "classes", ()))
