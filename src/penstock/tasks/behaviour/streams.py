"""Two streams: one sees what a frame looks like, the other how it moves; together they say what is done.

frame(s) ──spatial──► features ─┐
                                ├─► features side by side ─► logits = spatial share + motion share + bias
motions ───motion───► features ─┘

A share says how much a stream moves the logits away from what is usual (the bias), so a stream that knows nothing
changes nothing. Each stream alone, with the bias, is an answer too, and is trained as one beside the sum.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torchvision
from torch import nn

from penstock.tasks.behaviour.sizes import Size

COMPACT_WIDTHS = (48, 64, 96, 192)
MOST_FEATURES = 512  # of a residual network: what is kept of every frame of every video


class Seen(NamedTuple):
    """What two streams say of some clips."""

    features: torch.Tensor  # N×F, those of the spatial stream first
    logits: torch.Tensor  # N×behaviours


class TwoStreams(nn.Module):
    """A spatial and a motion stream, and the heads over both."""

    def __init__(self, size: Size, behaviours: int, flow_count: int, *, dropout: float = 0.25) -> None:
        super().__init__()
        self.sees_clips = size.sees_clips
        self.spatial, self.spatial_features = _spatial(size)
        self.motion, self.motion_features = _motion(size, flow_count)
        channels = 2 if size.sees_clips else 2 * flow_count
        self.motion_scale: nn.Module = nn.BatchNorm3d(channels) if size.sees_clips else nn.BatchNorm2d(channels)
        self.dropout = nn.Dropout(dropout)
        self.spatial_head = nn.Linear(self.spatial_features, behaviours, bias=False)
        self.motion_head = nn.Linear(self.motion_features, behaviours, bias=False)
        self.bias = nn.Parameter(torch.zeros(behaviours))

    @property
    def feature_count(self) -> int:
        return self.spatial_features + self.motion_features

    def features(self, images: torch.Tensor, flows: torch.Tensor) -> torch.Tensor:
        """N×F of frames (N×3×H×W; N×3×T×H×W where clips are seen) and the motions of each clip (N×flows×2×h×w)."""
        flows = flows.transpose(1, 2) if self.sees_clips else flows.flatten(1, 2)
        return torch.cat([self.spatial(images), self.motion(self.motion_scale(flows))], dim=1)

    def shares(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What each stream adds to the bias."""
        spatial, motion = self.dropout(features).split([self.spatial_features, self.motion_features], dim=1)
        return self.spatial_head(spatial), self.motion_head(motion)

    def forward(self, images: torch.Tensor, flows: torch.Tensor) -> Seen:
        features = self.features(images, flows)
        spatial, motion = self.shares(features)
        return Seen(features, spatial + motion + self.bias)


def _spatial(size: Size) -> tuple[nn.Module, int]:
    if size.sees_clips:
        return _clip_network(3)
    network = torchvision.models.get_model(size.backbone, weights=None)
    return _without_head(network)


def _without_head(network: Any) -> tuple[nn.Module, int]:
    """A network that ends in its features, and how many they are."""
    if hasattr(network, "classifier"):
        count = int(network.classifier[-1].in_features)
        network.classifier = nn.Identity()
        return network, count
    count = int(network.fc.in_features)
    network.fc = nn.Identity()
    if count > MOST_FEATURES:
        network.fc = nn.Sequential(nn.Linear(count, MOST_FEATURES), nn.ReLU(inplace=True))
    return network, min(count, MOST_FEATURES)


def _motion(size: Size, flow_count: int) -> tuple[nn.Module, int]:
    if size.sees_clips:
        return _clip_network(2)
    if size.backbone == "mobilenet_v2":
        return CompactStream(2 * flow_count), COMPACT_WIDTHS[-1]
    network: Any = torchvision.models.get_model(size.backbone, weights=None)
    network.conv1 = _with_inputs(network.conv1, 2 * flow_count)
    network.maxpool = nn.Identity()  # motion comes at a quarter of the frame's size already
    return _without_head(network)


def _clip_network(channels: int) -> tuple[nn.Module, int]:
    """A 3D ResNet34: time is halved with space, from the second stage on."""
    resnet = torchvision.models.video.resnet
    network: Any = resnet.VideoResNet(
        block=resnet.BasicBlock,
        conv_makers=[resnet.Conv3DSimple] * 4,
        layers=[3, 4, 6, 3],
        stem=resnet.BasicStem,
    )
    network.stem[0] = _with_inputs(network.stem[0], channels)
    return _without_head(network)


def _with_inputs(layer: Any, channels: int) -> nn.Module:
    """The same convolution for another number of input channels."""
    kind = type(layer)
    return kind(channels, layer.out_channels, layer.kernel_size, stride=layer.stride, padding=layer.padding, bias=False)


class CompactStream(nn.Module):
    """A few convolutions over the motions of a clip: smooth maps need no deep network."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = channels
        for number, width in enumerate(COMPACT_WIDTHS):
            convolution = nn.Conv2d(before, width, 3, stride=2 if number else 1, padding=1, bias=False)
            layers += [convolution, nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
            before = width
        self.layers = nn.Sequential(*layers)

    def forward(self, flows: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.layers(flows).amax(dim=(2, 3))  # what moves is small: a mean would drown it
        return found
