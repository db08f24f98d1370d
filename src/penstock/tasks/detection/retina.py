"""RetinaNet: a pyramid, and two heads over all of its maps. Losses and answers come from the same outputs.

Weights are named as in torchvision: backbone.body.…, backbone.fpn.…, head.classification_head.…, head.regression_head.…
There is no class for the background: its score is that of no class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn
from torchvision.models.detection import _utils as matching
from torchvision.models.detection.retinanet import RetinaNetHead
from torchvision.ops import box_iou

from penstock.tasks.detection.anchors import PER_PLACE, grid_anchors
from penstock.tasks.detection.pyramids import STRIDES, made_pyramid, maps_of

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
