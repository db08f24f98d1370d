"""The networks of a behaviour model: motion between frames, two streams, and the sequence network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import torch
import torchvision
from torch import nn
from torch.nn.functional import grid_sample, interpolate, normalize, pad

from penstock.augment.pixelwise import Channels
from penstock.errors import one_of
from penstock.tasks.behaviour.settings import SIZES, Size

# How each pixel moves from one frame to the next, by a network that looks at pairs.
#
# frame ─describe─► maps at 1/4, 1/8, 1/16 ─┐
# frame ─describe─► maps at 1/4, 1/8, 1/16 ─┴─between─► motion at 1/16 ─► 1/8 ─► 1/4
#
# `describe` looks at single frames, so in a video every frame is described once and every pair is compared once. At
# each scale the second map is moved by what the scale above found and compared with the first at 5×5 places, and the
# motion is corrected. Motion is in pixels of its own map: where the first frame's pixel is in the second, minus where
# it was.


REACH = 2  # places to each side that are compared at every scale: 32 px at 1/16
COMPARED = (2 * REACH + 1) ** 2
DESCRIPTORS = 8  # channels that are compared; more cost time and tell little
SCALES = (4, 8, 16)  # how much smaller than the frame the maps are
FINEST = SCALES[0]

Maps = list[torch.Tensor]  # of one or more frames, the finest first


class MotionNetwork(nn.Module):
    """Motion between pairs of frames."""

    def __init__(self, width: int) -> None:
        super().__init__()
        widths = [2 * width, 3 * width, 4 * width]
        self.first = _halving(3, width, 5)
        self.stages = nn.ModuleList(
            _halving(before, after, 3) for before, after in zip([width, *widths], widths, strict=False)
        )
        self.descriptors = nn.ModuleList(nn.Conv2d(each, DESCRIPTORS, 1, bias=False) for each in widths)
        self.estimators = nn.ModuleList(
            Estimator(each, above, each) for each, above in zip(widths, [*widths[1:], 0], strict=True)
        )

    def describe(self, frames: torch.Tensor) -> Maps:
        """Maps of N×3×H×W frames, at every scale the map itself and what is compared of it."""
        seen = self.first(frames)
        maps = []
        for stage, descriptor in zip(self.stages, self.descriptors, strict=True):
            seen = stage(seen)
            maps.append(torch.cat([seen, normalize(descriptor(seen), dim=1)], dim=1))
        return maps

    def between(self, first: Maps, second: Maps) -> list[torch.Tensor]:
        """The motion of each pair as N×2×h×w (x, y), the finest scale first."""
        found: list[torch.Tensor] = []
        flow = above = None
        for number in reversed(range(len(self.estimators))):
            flow, above = self.estimators[number](first[number], second[number], flow, above)
            found.insert(0, flow)
        return found

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> list[torch.Tensor]:
        """The motion between two batches of frames, the finest scale first."""
        maps = self.describe(torch.cat([first, second]))
        count = len(first)
        return self.between([each[:count] for each in maps], [each[count:] for each in maps])


class Estimator(nn.Module):
    """The motion at one scale, from two maps and what the coarser scale found."""

    def __init__(self, channels: int, above: int, width: int) -> None:
        super().__init__()
        coarser = 2 + above if above else 0
        self.looking = nn.Sequential(
            _convolution(channels + COMPARED + coarser, width, 3), _convolution(width, width, 3)
        )
        self.flow = nn.Conv2d(width, 2, 3, padding=1)
        nn.init.zeros_(self.flow.weight)  # training begins with "nothing moves", which is nearly right everywhere
        nn.init.zeros_(self.flow.bias)

    def forward(
        self, first: torch.Tensor, second: torch.Tensor, flow: torch.Tensor | None, above: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        mine, theirs = first[:, -DESCRIPTORS:], second[:, -DESCRIPTORS:]
        seen = [first[:, :-DESCRIPTORS]]
        if flow is not None and above is not None:
            flow = 2 * enlarged(flow, first)
            theirs = moved(theirs, flow.detach())
            seen += [flow, enlarged(above, first)]
        seen.append(compared(mine, theirs))
        looked: torch.Tensor = self.looking(torch.cat(seen, dim=1))
        found: torch.Tensor = self.flow(looked)
        return (found if flow is None else flow + found), looked


def compared(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """How alike each place of the first map is to the places around it in the second, N×25×h×w."""
    height, width = first.shape[2:]
    around = pad(second, (REACH, REACH, REACH, REACH))
    alike = [
        (first * around[:, :, down : down + height, right : right + width]).sum(dim=1)
        for down in range(2 * REACH + 1)
        for right in range(2 * REACH + 1)
    ]
    return torch.stack(alike, dim=1)


def moved(image: torch.Tensor, flow: torch.Tensor) -> torch.Tensor:
    """The second image as the first would look, if the motion is right: each pixel from where it went."""
    height, width = flow.shape[2:]
    across = torch.arange(width, device=flow.device, dtype=flow.dtype) + flow[:, 0]
    down = torch.arange(height, device=flow.device, dtype=flow.dtype)[:, None] + flow[:, 1]
    grid = torch.stack([(2 * across + 1) / width - 1, (2 * down + 1) / height - 1], dim=-1)
    there: torch.Tensor = grid_sample(image, grid.to(image.dtype), padding_mode="border", align_corners=False)
    return there


def enlarged(image: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return interpolate(image, size=like.shape[2:], mode="bilinear", align_corners=False)


def _convolution(inputs: int, outputs: int, side: int, stride: int = 1) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, side, stride=stride, padding=side // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.LeakyReLU(0.1))


def _halving(inputs: int, outputs: int, side: int) -> nn.Sequential:
    return _convolution(inputs, outputs, side, stride=2)


# From the features of a whole video to logits of each frame, with what happened before and after in view.
#
# features ─┬─► logits of each frame alone ─────────────(+)─► logits
#           └─► fewer channels ─► temporal network ──────┘
#
# The first branch begins as the heads of the two streams, the last layer of the second as zero: so training begins
# with what the streams say, and learns what time adds.


SequenceName = Literal["convolution", "gru"]
WIDTH = 64
DILATIONS = (1, 2, 4, 8, 16)
KERNEL = 3
# A GRU remembers without end, in principle; what lies further away than this is left out.
GRU_REACH = 256


class SequenceNetwork(nn.Module):
    """Logits of every frame of a video."""

    def __init__(self, features: int, behaviours: int, kind: SequenceName, *, dropout: float = 0.25) -> None:
        super().__init__()
        one_of("sequence", kind, get_args(SequenceName))
        self.alone = nn.Conv1d(features, behaviours, 1)
        self.fewer = nn.Conv1d(features, WIDTH, 1)
        self.dropout = nn.Dropout(dropout)
        inputs = WIDTH + behaviours
        self.temporal: Any = DilatedConvolutions(inputs) if kind == "convolution" else BothWays(inputs)
        self.last = nn.Conv1d(WIDTH, behaviours, 1)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    @property
    def receptive_field(self) -> int:
        """How many frames an answer depends on, the frame itself in their middle."""
        field: int = self.temporal.receptive_field
        return field

    def forward(self, features: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """B×behaviours×T of B×F×T; `mask` (B×1×T) is 0 behind the end of videos that are shorter than the window."""
        mask = torch.ones_like(features[:, :1]) if mask is None else mask
        alone = self.alone(features)
        fewer = torch.relu(self.fewer(self.dropout(features)))
        seen = self.temporal(torch.cat([fewer, alone], dim=1) * mask, mask)
        logits: torch.Tensor = alone + self.last(self.dropout(seen))
        return logits

    def begin_with_heads(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        """Take over what the streams say of each frame alone: behaviours×F, and behaviours."""
        with torch.no_grad():
            self.alone.weight.copy_(weight[:, :, None])
            self.alone.bias.copy_(bias)


class DilatedConvolutions(nn.Module):
    """Convolutions over time, each looking twice as far as the one before; beyond the ends are zeros."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.enter = nn.Conv1d(inputs, WIDTH, 1)
        self.layers = nn.ModuleList(
            nn.Conv1d(WIDTH, WIDTH, KERNEL, dilation=dilation, padding=dilation * (KERNEL // 2))
            for dilation in DILATIONS
        )

    @property
    def receptive_field(self) -> int:
        return 1 + (KERNEL - 1) * sum(DILATIONS)

    def forward(self, features: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        seen = self.enter(features)
        for layer in self.layers:
            seen = seen + torch.relu(layer(seen * mask))
        return seen


class BothWays(nn.Module):
    """A GRU that reads the video forwards and one that reads it backwards."""

    receptive_field = 2 * GRU_REACH + 1

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.gru = nn.GRU(inputs, WIDTH // 2, batch_first=True, bidirectional=True)

    def forward(self, features: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        seen: torch.Tensor = self.gru(features.transpose(1, 2))[0]
        return seen.transpose(1, 2) * mask


# Two streams: one sees what a frame looks like, the other how it moves; together they say what is done.
#
# frame(s) ──spatial──► features ─┐
#                                 ├─► features side by side ─► logits = spatial share + motion share + bias
# motions ───motion───► features ─┘
#
# A share says how much a stream moves the logits away from what is usual (the bias), so a stream that knows nothing
# changes nothing. Each stream alone, with the bias, is an answer too, and is trained as one beside the sum.


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


PARTS = ("motion", "frames", "sequence")


@dataclass(frozen=True)
class Plan:
    """What the networks are made by."""

    size: str
    behaviours: int
    frames: int  # of a clip
    stride: int  # frames from one frame of a clip to the next
    sequence: SequenceName
    mean: Channels  # of levels 0 to 255
    std: Channels


class BehaviourNetwork(nn.Module):
    """`motion`, `frames` and `sequence`, of which a stage of training may have only some."""

    motion: MotionNetwork
    frames: TwoStreams
    sequence: SequenceNetwork
    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, plan: Plan, parts: tuple[str, ...] = PARTS) -> None:
        super().__init__()
        self.plan = plan
        size = SIZES[plan.size]
        streams = TwoStreams(size, plan.behaviours, plan.frames - 1) if set(parts) & {"frames", "sequence"} else None
        if "motion" in parts:
            self.motion = MotionNetwork(size.motion_width)
        if "frames" in parts and streams is not None:
            self.frames = streams
        if "sequence" in parts and streams is not None:
            self.sequence = SequenceNetwork(streams.feature_count, plan.behaviours, plan.sequence)
        for name in ("mean", "std"):
            self.register_buffer(name, torch.tensor(getattr(plan, name), dtype=torch.float32).view(1, 3, 1, 1))

    def pixels(self, images: torch.Tensor) -> torch.Tensor:
        """What networks take, N×3×H×W, of N×H×W×3 images: levels of uint8, or floats from 0 to 1."""
        top = 1.0 if images.dtype == torch.uint8 else 255.0
        # The channels come first, and lie last in memory: what convolutions are fastest with.
        return (images.float().permute(0, 3, 1, 2) - self.mean / top) / (self.std / top)

    def clip_flows(self, pixels: torch.Tensor) -> torch.Tensor:
        """The motions within clips, N×(T−1)×2×h×w of N×T×3×H×W; each frame is described once."""
        count, frames = pixels.shape[:2]
        maps = self.motion.describe(pixels.flatten(0, 1))
        clips = [each.unflatten(0, (count, frames)) for each in maps]
        flows = self.motion.between(
            [each[:, :-1].flatten(0, 1) for each in clips], [each[:, 1:].flatten(0, 1) for each in clips]
        )
        return flows[0].unflatten(0, (count, frames - 1))

    def seen_images(self, pixels: torch.Tensor) -> torch.Tensor:
        """What the spatial stream takes of clips N×T×3×H×W: the middle frame, or all with time behind the channels."""
        if self.frames.sees_clips:
            return pixels.transpose(1, 2)
        return pixels[:, pixels.shape[1] // 2]

    def load_parts(self, weights: Mapping[str, Any], parts: tuple[str, ...]) -> None:
        """Take over the weights of whole parts from a state_dict that has more or other ones."""
        for part in parts:
            own = {
                name.removeprefix(f"{part}."): value for name, value in weights.items() if name.startswith(f"{part}.")
            }
            getattr(self, part).load_state_dict(own)
