"""From candidates to answers: of boxes that overlap too much, the one with the highest score stays."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torchvision.ops import batched_nms, nms

from penstock.tasks.detection.retina import Candidates

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
