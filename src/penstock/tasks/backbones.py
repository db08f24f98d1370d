"""Networks by name: those that torchvision classifies images with, and `tiny` for tests and demos.

A network ends in its head: the last layer with weights, linear or 1×1 convolution, one output for each class.
"""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

import torch
import torchvision
from torch import nn

from penstock.errors import OptionError, nearest

TINY = "tiny"
# Networks with fewer parts than this at the top keep their stages one level deeper, as in `features`.
FEW_PARTS = 4


def backbone_names() -> list[str]:
    """Every name that `backbone` knows."""
    return [TINY, *torchvision.models.list_models(module=torchvision.models)]


def check_backbone(name: str) -> None:
    """Refuse a name that there is no network for."""
    names = backbone_names()
    if name not in names:
        raise OptionError(
            f"backbone={name!r} is not one of the {len(names)} that torchvision has for classification, nor "
            f"{TINY!r}.{nearest(str(name), names) or ' Examples: mobilenet_v2, resnet18, efficientnet_b0.'}"
        )


def made_backbone(name: str, outputs: int, size: int) -> nn.Module:
    """A network with random weights for images of `size`, and `outputs` numbers for each."""
    if name == TINY:
        return TinyNetwork(outputs)
    builder = torchvision.models.get_model_builder(name)
    return builder(weights=None, num_classes=outputs, **_options(builder, size))


def _options(builder: Any, size: int) -> dict[str, Any]:
    """What some kinds of networks want to be told, found by the names of their parameters."""
    wanted = {
        "image_size": size,
        "input_size": (size, size),
        "aux_logits": False,  # further heads that only training by hand uses
        "transform_input": True,  # networks that were made for other statistics convert by themselves
        "init_weights": True,
    }
    kind = get_type_hints(builder)["return"]
    known = inspect.signature(kind).parameters
    return {name: value for name, value in wanted.items() if name in known}


def head_name(network: nn.Module) -> str:
    """The name of the layer that gives one number for each class."""
    names: list[str] = [name for name, layer in network.named_modules() if isinstance(layer, (nn.Linear, nn.Conv2d))]
    if not names:
        raise OptionError(f"{type(network).__name__} has no linear layer or convolution that could be its head.")
    return names[-1]


def stages_of(network: nn.Module) -> list[tuple[str, nn.Module]]:
    """Parts with weights in the order of the data; the last one holds the head."""
    head = head_name(network)
    parts = [(name, part) for name, part in network.named_children() if _has_weights(part)]
    if len(parts) >= FEW_PARTS:
        return parts
    stages: list[tuple[str, nn.Module]] = []
    for name, part in parts:
        is_divided = isinstance(part, (nn.Sequential, nn.ModuleList)) and not head.startswith(name)
        stages += [(f"{name}.{inner}", each) for inner, each in part.named_children()] if is_divided else [(name, part)]
    return [(name, part) for name, part in stages if _has_weights(part)]


def _has_weights(part: nn.Module) -> bool:
    return next(part.parameters(), None) is not None


class TinyNetwork(nn.Module):
    """Four convolutions and a linear layer, for images from 16 px: learns simple shapes in seconds on a CPU."""

    def __init__(self, outputs: int, widths: tuple[int, ...] = (16, 32, 64, 64)) -> None:
        super().__init__()
        layers, before = [], 3
        for width in widths:
            layers.append(_halving(before, width))
            before = width
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(before, outputs)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.classifier(self.features(images).mean(dim=(2, 3)))
        return found


def _halving(inputs: int, outputs: int) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))
