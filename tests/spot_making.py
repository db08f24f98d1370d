"""A detector that needs no training: it finds bright spots, and sees 8 px at a time. And pictures for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import penstock as ps
from penstock.prediction.models import Model
from penstock.tasks.detection.retina import Candidates, Seen


class Spots(torch.nn.Module):
    """A box of 16 px around every cell of 8 px that is bright; the brighter, the surer."""

    def forward(self, images: Any) -> Seen:
        bright = torch.nn.functional.avg_pool2d(images.mean(dim=1, keepdim=True), 8)
        logits = bright.flatten(1)[:, :, None] * 2
        down, across = torch.meshgrid(*(torch.arange(side) * 8.0 for side in bright.shape[2:]), indexing="ij")
        middle = torch.stack([across, down], dim=2).reshape(-1, 2) + 4
        anchors = torch.cat([middle - 8, middle + 8], dim=1)
        return Seen(logits, torch.zeros(len(images), len(anchors), 4), anchors)

    def candidates(self, seen: Seen, least_score: float) -> list[Candidates]:
        found = []
        for logits in seen.logits:
            kept = logits[:, 0].sigmoid() >= least_score
            found.append(Candidates(seen.anchors[kept], logits[kept].sigmoid()))
        return found


TASK = ps.Detection(["Spot"], backbone="tiny", levels=3, anchor_scale=4.0, score_threshold=0.6, nms_threshold=0.1)
MODEL = Model(TASK, Spots(), device="cpu")


def picture(width: int, height: int, seed: int) -> Any:
    """Bright spots of different brightness, far enough apart that no two are one's neighbours' neighbours."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 40, (height, width, 3)).astype(np.uint8)
    for y in range(8, height - 16, 32):
        for x in range(8, width - 16, 32):
            if rng.random() < 0.6:
                pixels[y : y + 8, x : x + 8] = rng.integers(200, 256)
    return pixels
