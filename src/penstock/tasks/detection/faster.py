"""Faster R-CNN: a pyramid proposes places where something may be; each is looked at again and given a class.

    images ──► maps ──► rpn: is there something, and how far is the anchor off ──► the best proposals
                  └──────────────────► roi_heads: the map inside of each proposal ──► class and box

Nothing is drawn at random, unlike in the paper: all anchors count by focal loss, and proposals of nothing weigh at most
three times as much together as those of something. So the losses of a sample are the same whenever it is judged.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn
from torch.nn.functional import cross_entropy, smooth_l1_loss
from torchvision.models.detection import _utils as matching
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead
from torchvision.models.detection.rpn import RPNHead, concat_box_prediction_layers
from torchvision.ops import MultiScaleRoIAlign, batched_nms, box_iou, sigmoid_focal_loss

from penstock.tasks.detection.retina import (
    FEW,
    PER_PLACE,
    STRIDES,
    Candidates,
    Losses,
    Truth,
    grid_anchors,
    made_pyramid,
    maps_of,
)

# Anchors and proposals are of a box from the first on and of nothing below the second; between them they are not asked.
ANCHOR_IOUS, PROPOSAL_IOUS = (0.7, 0.3), (0.5, 0.5)
# Of each map before suppression, and of an image after it: the best. A window with 500 trees has some thousand.
MOST_OF_MAP, MOST_PROPOSALS, PROPOSAL_NMS = 1000, 1000, 0.7
# Losses look at fewer of them: most of what is left is ground.
MOST_LEARNED = 256
POOLED = 7  # cells along the side of a proposal
NOTHING_WEIGHT = 3.0
WIDEST_HEAD = 1024
BETA = 1 / 9  # below this, the loss of a side is quadratic
FIRST_OBJECTNESS = -4.6  # one anchor in a hundred


class Looked(NamedTuple):
    """The outputs for a batch: maps, N×anchors objectness, N×anchors×4, anchors, and the proposals of each image."""

    maps: list[torch.Tensor]
    objectness: torch.Tensor
    offsets: torch.Tensor
    anchors: torch.Tensor
    proposals: list[torch.Tensor]
    size: tuple[int, int]


class Heads(nn.Module):
    """What is in each proposal: its class, 0 for nothing, and its box for each class."""

    def __init__(self, width: int, class_count: int) -> None:
        super().__init__()
        features = min(WIDEST_HEAD, 8 * width)
        self.box_pool = MultiScaleRoIAlign([str(level) for level in range(FEW)], POOLED, sampling_ratio=2)
        self.box_head = TwoMLPHead(width * POOLED**2, features)
        self.box_predictor = FastRCNNPredictor(features, class_count + 1)

    def forward(
        self, maps: list[torch.Tensor], proposals: list[torch.Tensor], size: tuple[int, int]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        named = {str(level): one.float() for level, one in enumerate(maps[:FEW])}  # as proposals are, also in bfloat16
        pooled = self.box_pool(named, proposals, [size] * len(proposals))
        logits, offsets = self.box_predictor(self.box_head(pooled))
        return logits.float(), offsets.float().reshape(len(logits), -1, 4)


class FasterDetector(nn.Module):
    """Images as N×3×H×W floats, already normalised and at the scale of the network, become `Looked`."""

    def __init__(self, backbone: str, class_count: int, *, levels: int, anchor_scale: float, frozen_norm: bool) -> None:
        super().__init__()
        self.backbone = made_pyramid(backbone, levels=levels, frozen_norm=frozen_norm)
        self.rpn = RPNHead(self.backbone.out_channels, PER_PLACE)
        nn.init.constant_(self.rpn.cls_logits.bias, FIRST_OBJECTNESS)
        self.roi_heads = Heads(self.backbone.out_channels, class_count)
        self.anchor_scale = anchor_scale
        self._anchor_matcher = matching.Matcher(*ANCHOR_IOUS, allow_low_quality_matches=True)
        self._proposal_matcher = matching.Matcher(*PROPOSAL_IOUS, allow_low_quality_matches=False)
        self._anchor_coder = matching.BoxCoder((1.0, 1.0, 1.0, 1.0))
        self._proposal_coder = matching.BoxCoder((10.0, 10.0, 5.0, 5.0))

    def forward(self, images: torch.Tensor) -> Looked:
        maps = maps_of(self.backbone, images)
        found = self.rpn(maps)
        counts = [one.shape[1:].numel() for one in found[0]]
        flat, offsets = (value.float() for value in concat_box_prediction_layers(*found))
        grids = [
            grid_anchors(one.shape[2], one.shape[3], stride, self.anchor_scale, images.device)
            for one, stride in zip(maps, STRIDES, strict=False)
        ]
        anchors, objectness = torch.cat(grids), flat.reshape(len(images), -1)
        offsets = offsets.reshape(len(images), -1, 4)
        proposals = [
            self._proposals(one.detach(), moved.detach(), anchors, counts)
            for one, moved in zip(objectness, offsets, strict=True)
        ]
        height, width = images.shape[2:]
        return Looked(maps, objectness, offsets, anchors, proposals, (height, width))

    def _proposals(
        self, objectness: torch.Tensor, offsets: torch.Tensor, anchors: torch.Tensor, counts: list[int]
    ) -> torch.Tensor:
        """The best boxes of one image that do not overlap too much, whatever map they come from."""
        chosen, maps, start = [], [], 0
        for level, count in enumerate(counts):
            best = objectness[start : start + count].topk(min(MOST_OF_MAP, count)).indices + start
            chosen.append(best)
            maps.append(torch.full_like(best, level))
            start += count
        rows, of_map = torch.cat(chosen), torch.cat(maps)
        boxes = self._anchor_coder.decode_single(offsets[rows], anchors[rows])
        kept = batched_nms(boxes, objectness[rows], of_map, PROPOSAL_NMS)[:MOST_PROPOSALS]
        return boxes[kept]

    def losses(self, seen: Looked, truths: list[Truth]) -> Losses:
        """For each image the loss of its classes, that of proposing included, that of its boxes, and how many anchors
        have a box."""
        return Losses.of([self._image_losses(seen, number, truth) for number, truth in enumerate(truths)])

    def _image_losses(self, seen: Looked, number: int, truth: Truth) -> Losses:
        matched = _matched(self._anchor_matcher, truth.boxes, seen.anchors)
        something, place = self._proposing_losses(seen, number, truth, matched)
        of_class, of_box = self._heads_losses(seen, number, truth)
        anchors = (matched >= 0).sum().clamp(min=1)
        return Losses(something + of_class, place + of_box, anchors.to(seen.objectness))

    def _proposing_losses(
        self, seen: Looked, number: int, truth: Truth, matched: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        objectness, offsets, anchors = seen.objectness[number], seen.offsets[number], seen.anchors
        found, asked = matched >= 0, matched != matching.Matcher.BETWEEN_THRESHOLDS
        count = max(1, int(found.sum()))
        something = sigmoid_focal_loss(objectness[asked], found[asked].float(), reduction="sum") / count
        wanted = self._anchor_coder.encode_single(truth.boxes[matched[found]], anchors[found])
        return something, smooth_l1_loss(offsets[found], wanted, beta=BETA, reduction="sum") / count

    def _heads_losses(self, seen: Looked, number: int, truth: Truth) -> tuple[torch.Tensor, torch.Tensor]:
        proposals = torch.cat([truth.boxes, seen.proposals[number][:MOST_LEARNED]])
        matched = _matched(self._proposal_matcher, truth.boxes, proposals)
        maps = [one[number : number + 1] for one in seen.maps]
        logits, offsets = self.roi_heads(maps, [proposals], seen.size)
        found = matched >= 0
        classes = torch.zeros(len(proposals), dtype=torch.int64, device=proposals.device)
        classes[found] = truth.labels[matched[found]] + 1
        count = max(1, int(found.sum()))
        weights = torch.where(found, 1.0, min(1.0, NOTHING_WEIGHT * count / max(1, int((~found).sum()))))
        of_class = (cross_entropy(logits, classes, reduction="none") * weights).sum() / weights.sum().clamp(min=1)
        wanted = self._proposal_coder.encode_single(truth.boxes[matched[found]], proposals[found])
        moved = offsets[found, classes[found]]
        return of_class, smooth_l1_loss(moved, wanted, beta=BETA, reduction="sum") / count

    def candidates(self, seen: Looked, least_score: float) -> list[Candidates]:
        """For each image what has a class with at least this score; a box for each class of a proposal."""
        logits, offsets = self.roi_heads(seen.maps, seen.proposals, seen.size)
        counts = [len(one) for one in seen.proposals]
        parts = zip(logits.split(counts), offsets.split(counts), seen.proposals, strict=True)
        return [self._image_candidates(*part, least_score) for part in parts]

    def _image_candidates(
        self, logits: torch.Tensor, offsets: torch.Tensor, proposals: torch.Tensor, least_score: float
    ) -> Candidates:
        scores = logits.softmax(dim=1)[:, 1:]
        rows, classes = (scores >= least_score).nonzero(as_tuple=True)
        boxes = self._proposal_coder.decode_single(offsets[rows, classes + 1], proposals[rows])
        alone = torch.zeros(len(rows), scores.shape[1], device=scores.device)
        alone[torch.arange(len(rows), device=rows.device), classes] = scores[rows, classes]
        return Candidates(boxes, alone)


def _matched(matcher: matching.Matcher, boxes: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """The number of the box that each of the others is of; below zero for none."""
    if not len(boxes) or not len(others):
        return torch.full((len(others),), matching.Matcher.BELOW_LOW_THRESHOLD, device=others.device)
    found: torch.Tensor = matcher(box_iou(boxes, others))
    return found
