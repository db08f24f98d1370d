"""RetinaNet: a feature pyramid with two heads, its anchors, and the answers that come from its candidates.

Weights are named as in torchvision: backbone.body.…, backbone.fpn.…, head.classification_head.…, head.regression_head.…
There is no class for the background: its score is that of no class.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torchvision
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import interpolate, pad
from torchvision.models.detection import _utils as matching
from torchvision.models.detection.backbone_utils import BackboneWithFPN
from torchvision.models.detection.retinanet import RetinaNetHead
from torchvision.ops import batched_nms, box_iou, nms
from torchvision.ops.feature_pyramid_network import LastLevelP6P7
from torchvision.ops.misc import FrozenBatchNorm2d

from penstock.augment.pixelwise import Channels
from penstock.errors import OptionError, nearest
from penstock.tasks.backbones import TINY
from penstock.tasks.device_pixels import normalised

# Anchors: the boxes that a network begins from, nine at every place of every map, and how they fit the data.
#
# The smallest is `scale` strides wide, four by default; on each map there are three sizes, a third of an octave
# apart, in three proportions. Places are counted from the corner of the image by whole strides, so that a shifted
# window gives shifted anchors.


DEFAULT_SCALE = 4.0
RATIOS = (0.5, 1.0, 2.0)  # height divided by width
STEPS = (1.0, 2 ** (1 / 3), 2 ** (2 / 3))
PER_PLACE = len(RATIOS) * len(STEPS)
# Scales that are tried where the default fits badly: half octaves down to boxes of 8 px and up to the double.
SCALES = tuple(float(f"{2 ** (half / 2):.3g}") for half in range(7))
# An anchor with less IoU than this is no match of a box, whatever its place.
FITTING_IOU = 0.5
# Where this share of boxes has a fitting anchor, nothing is changed: trained heads keep their meaning.
ENOUGH = 0.9
NEARLY = 0.02


def cell_anchors(stride: int, scale: float) -> torch.Tensor:
    """The anchors of one place, around 0, in whole pixels as torchvision has them."""
    sizes = torch.tensor([int(scale * stride * step) for step in STEPS], dtype=torch.float32)
    heights = torch.tensor(RATIOS).sqrt()
    wide, high = ((ratio[:, None] * sizes).flatten() for ratio in (1 / heights, heights))
    return (torch.stack([-wide, -high, wide, high], dim=1) / 2).round()


def grid_anchors(height: int, width: int, stride: int, scale: float, device: Any) -> torch.Tensor:
    """All anchors of a map, place by place, row by row."""
    xs, ys = (torch.arange(count, device=device, dtype=torch.float32) * stride for count in (width, height))
    down, across = torch.meshgrid(ys, xs, indexing="ij")
    places = torch.stack([across, down, across, down], dim=2).reshape(-1, 1, 4)
    return (places + cell_anchors(stride, scale).to(device)).reshape(-1, 4)


def fitting_share(sizes: NDArray[np.floating], scale: float, strides: tuple[int, ...]) -> float:
    """The share of boxes (n×2: width, height) for which an anchor of another place would have an IoU of 0.5."""
    shapes = np.concatenate([cell_anchors(stride, scale).numpy() for stride in strides])
    anchors = shapes[:, 2:] - shapes[:, :2]
    return float((_shape_iou(sizes, anchors).max(axis=1) >= FITTING_IOU).mean()) if len(sizes) else 1.0


def _shape_iou(sizes: NDArray[np.floating], anchors: NDArray[np.floating]) -> NDArray[np.floating]:
    shared = np.minimum(sizes[:, None], anchors[None]).prod(axis=2)
    ratio: NDArray[np.floating] = shared / (sizes.prod(axis=1)[:, None] + anchors.prod(axis=1)[None] - shared)
    return ratio


def fitted_scale(sizes: NDArray[np.floating], strides: tuple[int, ...], fewer: tuple[int, ...]) -> float:
    """The default, unless many boxes have no anchor of their size.

    Then, of the scales that nearly all boxes fit which fit any, the one with which they need the coarse maps least.
    """
    if fitting_share(sizes, DEFAULT_SCALE, strides) >= ENOUGH:
        return DEFAULT_SCALE
    shares = {scale: fitting_share(sizes, scale, strides) for scale in SCALES}
    good = [scale for scale, share in shares.items() if share >= max(shares.values()) - NEARLY]
    return max(good, key=lambda scale: (fitting_share(sizes, scale, fewer), -abs(math.log(scale / DEFAULT_SCALE))))


# Backbones with a feature pyramid: maps at strides 8, 16 and 32, or also at 64 and 128, made from the third.
#
# The names of weights are those of torchvision: body.…, fpn.inner_blocks.…, fpn.layer_blocks.…, fpn.extra_blocks.p6.


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
        raise OptionError(
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


# An anchor is of a box from the first on, of nothing below the second, and not asked between them.
MATCHED, UNMATCHED = 0.5, 0.4


class Truth(NamedTuple):
    """What is in one image: boxes n×4 in pixels of the network's input, and the number of each one's class."""

    boxes: torch.Tensor
    labels: torch.Tensor


class Candidates(NamedTuple):
    """Every box that a network considers in one image, and the score of each class for it, m×4 and m×classes."""

    boxes: torch.Tensor
    scores: torch.Tensor


class Seen(NamedTuple):
    """The outputs for a batch: N×anchors×classes, N×anchors×4, and the anchors."""

    logits: torch.Tensor
    offsets: torch.Tensor
    anchors: torch.Tensor


class Losses(NamedTuple):
    """Losses of classes and of boxes, and how many anchors have a box, at least 1; of one image, or one for each."""

    classes: torch.Tensor
    boxes: torch.Tensor
    anchors: torch.Tensor

    @classmethod
    def of(cls, images: Sequence[Losses]) -> Losses:
        """Those of single images, together."""
        return cls(*(torch.stack(column) for column in zip(*images, strict=True)))

    def named(self) -> dict[str, torch.Tensor]:
        """What is learned from: the means over the anchors of all images together, and their sum.

        As means over images, one that is nearly empty would count as much as one with a hundred crowns, and dense
        scenes would hardly be learned.
        """
        share = self.anchors / self.anchors.sum()
        classes, boxes = (self.classes * share).sum(), (self.boxes * share).sum()
        return {"loss": classes + boxes, "class_loss": classes, "box_loss": boxes}


def _head(width: int, class_count: int) -> RetinaNetHead:
    """Both heads. torchvision's first weights are made for 256 channels: through fewer, hardly anything would pass."""
    head = RetinaNetHead(width, PER_PLACE, class_count)
    for part in (head.classification_head, head.regression_head):
        for layer in part.conv.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    return head


class RetinaDetector(nn.Module):
    """Images as N×3×H×W floats, already normalised and at the scale of the network, become `Seen`."""

    def __init__(self, backbone: str, class_count: int, *, levels: int, anchor_scale: float, frozen_norm: bool) -> None:
        super().__init__()
        self.backbone = made_pyramid(backbone, levels=levels, frozen_norm=frozen_norm)
        self.head = _head(self.backbone.out_channels, class_count)
        self.anchor_scale = anchor_scale
        self._matcher = matching.Matcher(MATCHED, UNMATCHED, allow_low_quality_matches=True)

    def forward(self, images: torch.Tensor) -> Seen:
        maps = maps_of(self.backbone, images)
        outputs = self.head(maps)
        anchors = [
            grid_anchors(one.shape[2], one.shape[3], stride, self.anchor_scale, images.device)
            for one, stride in zip(maps, STRIDES, strict=False)
        ]
        return Seen(outputs["cls_logits"].float(), outputs["bbox_regression"].float(), torch.cat(anchors))

    def losses(self, seen: Seen, truths: list[Truth]) -> Losses:
        """For each image the loss of its classes, that of its boxes, and the anchors that both are means over."""
        return Losses.of([self._image_losses(seen, number, truth) for number, truth in enumerate(truths)])

    def _image_losses(self, seen: Seen, number: int, truth: Truth) -> Losses:
        targets = [{"boxes": truth.boxes, "labels": truth.labels}]
        matched = self._matched(seen.anchors, truth.boxes)
        outputs = {
            "cls_logits": seen.logits[number : number + 1],
            "bbox_regression": seen.offsets[number : number + 1],
        }
        losses = self.head.compute_loss(targets, outputs, [seen.anchors], [matched])
        anchors = (matched >= 0).sum().clamp(min=1)
        return Losses(losses["classification"], losses["bbox_regression"], anchors.to(seen.logits))

    def _matched(self, anchors: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
        """The number of the box that each anchor is to find; below zero for none."""
        if not len(boxes):
            return torch.full((len(anchors),), matching.Matcher.BELOW_LOW_THRESHOLD, device=anchors.device)
        found: torch.Tensor = self._matcher(box_iou(boxes, anchors))
        return found

    def candidates(self, seen: Seen, least_score: float) -> list[Candidates]:
        """For each image what has a class with at least this score."""
        return [
            self._image_candidates(logits, offsets, seen.anchors, least_score)
            for logits, offsets in zip(seen.logits, seen.offsets, strict=True)
        ]

    def _image_candidates(
        self, logits: torch.Tensor, offsets: torch.Tensor, anchors: torch.Tensor, least_score: float
    ) -> Candidates:
        scores = logits.sigmoid()
        some = (scores.max(dim=1).values >= least_score).nonzero().flatten()
        boxes = self.head.regression_head.box_coder.decode_single(offsets[some], anchors[some])
        return Candidates(boxes, scores[some])


# From images of a batch to what a network takes: normalised, at its scale, on one canvas.
#
# A canvas is a multiple of 32 px, so that a map's places lie on whole strides; what it has beyond the image is zero,
# which is the mean of all images.


CANVAS_STEP = 32


def as_list(images: Any) -> list[torch.Tensor]:
    """The images of a batch, which come as one tensor where all have one size."""
    return list(images.unbind(0)) if isinstance(images, torch.Tensor) else list(images)


def rows_by_size(images: Any) -> list[list[int]]:
    """Rows of images of the same size, so that no image is padded for another one's sake."""
    if isinstance(images, torch.Tensor):
        return [list(range(len(images)))] if len(images) else []
    found: dict[tuple[int, ...], list[int]] = {}
    for row, image in enumerate(images):
        found.setdefault(tuple(image.shape), []).append(row)
    return list(found.values())


def canvas(images: Any, mean: Channels, std: Channels, scale: float) -> torch.Tensor:
    """N×3×H×W of images of any sizes, H×W×3 each, all in the size of the largest."""
    if isinstance(images, torch.Tensor):
        return _on_canvas(_scaled(normalised(images, mean, std), scale), None)
    pieces = [_scaled(normalised(image[None], mean, std), scale) for image in images]
    height, width = (max(piece.shape[axis] for piece in pieces) for axis in (2, 3))
    return torch.cat([_on_canvas(piece, (height, width)) for piece in pieces])


def _scaled(pixels: torch.Tensor, scale: float) -> torch.Tensor:
    if scale == 1.0:
        return pixels
    size = [max(1, round(side * scale)) for side in pixels.shape[2:]]
    return interpolate(pixels, size=size, mode="bilinear", align_corners=False, antialias=scale < 1)


def _on_canvas(pixels: torch.Tensor, size: Sequence[int] | None) -> torch.Tensor:
    height, width = pixels.shape[2:] if size is None else size
    down = math.ceil(height / CANVAS_STEP) * CANVAS_STEP - pixels.shape[2]
    right = math.ceil(width / CANVAS_STEP) * CANVAS_STEP - pixels.shape[3]
    return pad(pixels, (0, right, 0, down)) if down or right else pixels


# From candidates to answers: of boxes that overlap too much, the one with the highest score stays.


# Below this nothing is an answer; between this and the threshold of the task it counts for average precision alone.
LEAST_SCORE = 0.05
# Candidates of one image that are looked at together. A window with 500 trees has some 10,000 of them.
MOST_CANDIDATES = 30_000


class Found(NamedTuple):
    """Boxes of one image, best first: n×4 in its pixels, the class number of each, and its score."""

    boxes: torch.Tensor
    labels: torch.Tensor
    scores: torch.Tensor

    def taken(self, rows: torch.Tensor) -> Found:
        return Found(self.boxes[rows], self.labels[rows], self.scores[rows])


def single_class(candidates: Candidates, least_score: float) -> Found:
    """Every class of every candidate that has score enough, as a box of its own; best first."""
    place, label = (candidates.scores >= least_score).nonzero(as_tuple=True)
    scores = candidates.scores[place, label]
    order = scores.argsort(descending=True, stable=True)[:MOST_CANDIDATES]
    return Found(candidates.boxes[place[order]], label[order], scores[order])


def inside(found: Found, width: float, height: float) -> Found:
    """Boxes cut at the border of the image; those that lie outside are left out."""
    limit = found.boxes.new_tensor([width, height, width, height])
    boxes = torch.minimum(found.boxes.clamp(min=0), limit)
    solid = (boxes[:, 2:] > boxes[:, :2]).all(dim=1).nonzero().flatten()
    return Found(boxes, found.labels, found.scores).taken(solid)


def suppressed(found: Found, iou: float, *, by_class: bool, most: int | None) -> Found:
    """The boxes that stay, best first; with `most` only so many of them."""
    kept = batched_nms(found.boxes, found.scores, found.labels, iou) if by_class else nms(*found[::2], iou)
    return found.taken(kept if most is None else kept[:most])
