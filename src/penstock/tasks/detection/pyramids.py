"""Backbones with a feature pyramid: maps at strides 8, 16 and 32, or also at 64 and 128, made from the third.

The names of weights are those of torchvision: body.…, fpn.inner_blocks.…, fpn.layer_blocks.…, fpn.extra_blocks.p6.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import torch
import torchvision
from torch import nn
from torchvision.models.detection.backbone_utils import BackboneWithFPN
from torchvision.ops.feature_pyramid_network import LastLevelP6P7
from torchvision.ops.misc import FrozenBatchNorm2d

from penstock.errors import RecipeError, nearest
from penstock.tasks.backbones import TINY

STRIDES = (8, 16, 32, 64, 128)
FEW, MANY = 3, 5  # maps
Norm = Callable[..., nn.Module]


class Pyramid(NamedTuple):
    """How a pyramid stands on a backbone: the parts whose maps have strides 8, 16 and 32, their channels, its own."""

    parts: tuple[str, str, str]
    channels: tuple[int, int, int]
    width: int


_DEEP = ("layer2", "layer3", "layer4")
PYRAMIDS = {
    "resnet18": Pyramid(_DEEP, (128, 256, 512), 256),
    "resnet34": Pyramid(_DEEP, (128, 256, 512), 256),
    "resnet50": Pyramid(_DEEP, (512, 1024, 2048), 256),
    # Its parts are numbered. Half the width: the heads would otherwise take ten times as long as the backbone.
    "mobilenet_v2": Pyramid(("6", "13", "17"), (32, 96, 320), 128),
    TINY: Pyramid(("2", "3", "4"), (32, 48, 64), 32),
}


def check_pyramid(backbone: str) -> None:
    """Refuse a backbone that no pyramid stands on."""
    if backbone not in PYRAMIDS:
        raise RecipeError(
            f"backbone={backbone!r} is not one of {', '.join(PYRAMIDS)}, which detection knows."
            f"{nearest(str(backbone), list(PYRAMIDS))}"
        )


def made_pyramid(backbone: str, *, levels: int, frozen_norm: bool) -> BackboneWithFPN:
    """A backbone with random weights, and its pyramid of so many maps."""
    shape = PYRAMIDS[backbone]
    body = _body(backbone, FrozenBatchNorm2d if frozen_norm else nn.BatchNorm2d)
    names = {part: str(number) for number, part in enumerate(shape.parts)}
    extra = LastLevelP6P7(shape.width, shape.width)
    pyramid = BackboneWithFPN(body, names, list(shape.channels), shape.width, extra)
    if levels == FEW:
        pyramid.fpn.extra_blocks = None
    return pyramid


def _body(backbone: str, norm: Norm) -> nn.Module:
    if backbone == TINY:
        return _tiny(norm)
    network = torchvision.models.get_model(backbone, weights=None, norm_layer=norm)
    body: nn.Module = network.features if backbone == "mobilenet_v2" else network
    return body


def _tiny(norm: Norm) -> nn.Sequential:
    """Five convolutions: sees simple shapes, for tests and demos."""
    widths = (3, 16, 24, 32, 48, 64)
    return nn.Sequential(*(_halving(inputs, outputs, norm) for inputs, outputs in itertools.pairwise(widths)))


def _halving(inputs: int, outputs: int, norm: Norm) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
    return nn.Sequential(convolution, norm(outputs), nn.ReLU(inplace=True))


def backbone_weight_name(backbone: str, name: str) -> str:
    """The name that a weight of the plain network has in a body."""
    return name.removeprefix("features.") if backbone == "mobilenet_v2" else name


def maps_of(pyramid: nn.Module, images: torch.Tensor) -> list[torch.Tensor]:
    """The maps of a batch of images, finest first."""
    return list(pyramid(images).values())
