"""Random changes of images on the device, a batch at a time, and boxes that follow.

    the image ──► a part of it, larger or smaller by `zoom` ──► flipped, its axes exchanged ──► other colours

Everything is drawn from (seed, epoch, sample), so that it is the same however a batch was made or dealt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import affine_grid, grid_sample

from penstock.augment.pixelwise import Channels
from penstock.tasks.detection.retina import as_list
from penstock.tasks.device_pixels import sample_numbers
from penstock.tasks.task import Batch

# Far from the numbers of a flow's own steps, and from that of colours.
GEOMETRY_STEP = 1_000_002
DRAWN = 6
# Of a box, less than this is no box, in pixels.
LEAST_SIDE = 2.0


@dataclass(frozen=True)
class Changes:
    """How images may be changed; `size` is the side of what comes out, None for the size of the images."""

    size: int | None
    zoom: tuple[float, float]
    flip: float
    vertical_flip: float
    turn: float
    min_kept: float
    fill: Channels  # of what lies outside, as levels


@dataclass(frozen=True)
class Placed:
    """What one sample's draw comes to: the part's corner in the image, how much larger it is shown, how turned."""

    corner: tuple[float, float]
    zoom: float
    size: tuple[int, int]  # width, height of what comes out
    mirrored: tuple[bool, bool]
    turned: bool


def changed(batch: Batch, changes: Changes, *, seed: int, epoch: int) -> Batch:
    """The batch with images as N×H×W×3 floats from 0 to 1, all of one size."""
    images = as_list(batch["image"])
    if not images:
        return batch
    drawn = sample_numbers(batch, seed, epoch, GEOMETRY_STEP, DRAWN).tolist()
    largest = tuple(max(image.shape[axis] for image in images) for axis in (1, 0))
    size = largest if changes.size is None else (changes.size, changes.size)
    places = [_placed(image, changes, size, row) for image, row in zip(images, drawn, strict=True)]
    pixels = torch.stack([_shown(image, place, changes) for image, place in zip(images, places, strict=True)])
    followed = [
        boxes_shown(boxes, place, changes.min_kept) for boxes, place in zip(batch["boxes"], places, strict=True)
    ]
    labels = [labels[kept] for labels, (_, kept) in zip(batch["box_label"], followed, strict=True)]
    return {**batch, "image": pixels, "boxes": [boxes for boxes, _ in followed], "box_label": labels}


def _placed(image: torch.Tensor, changes: Changes, size: tuple[int, int], drawn: list[float]) -> Placed:
    least, most = changes.zoom
    zoom = least * (most / least) ** drawn[0]
    height, width = image.shape[:2]
    turned = size[0] == size[1] and drawn[5] < changes.turn
    # A part that is larger than the image holds all of it, at a random place.
    corner = (drawn[1] * (width - size[0] / zoom), drawn[2] * (height - size[1] / zoom))
    return Placed(corner, zoom, size, (drawn[3] < changes.flip, drawn[4] < changes.vertical_flip), turned)


def _shown(image: torch.Tensor, place: Placed, changes: Changes) -> torch.Tensor:
    """The part of one image as H×W×3 floats from 0 to 1."""
    pixels = image.float() / 255 if image.dtype == torch.uint8 else image.float()
    fill = torch.tensor(changes.fill, device=image.device) / 255
    # Outside of the image the sampler gives zeros.
    centred = (pixels - fill).permute(2, 0, 1)[None]
    width, height = place.size
    grid = affine_grid(_theta(place, image).to(image.device), [1, 3, height, width], align_corners=False)
    shown: torch.Tensor = grid_sample(centred, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    return shown[0].permute(1, 2, 0) + fill


def _theta(place: Placed, image: torch.Tensor) -> torch.Tensor:
    """From places of the result to places of the image, both from −1 to 1 along an axis."""
    rows: list[list[float]] = []
    for axis in range(2):
        side = float(image.shape[1 - axis])
        share = place.size[axis] / (place.zoom * side)
        middle = share + 2 * place.corner[axis] / side - 1
        factor = -share if place.mirrored[axis] else share
        own = [0.0, 0.0, middle]
        own[1 - axis if place.turned else axis] = factor
        rows.append(own)
    return torch.tensor([rows])


def boxes_shown(boxes: torch.Tensor, place: Placed, min_kept: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The boxes in pixels of the result, cut at its border; and which of the boxes they are.

    A box stays when more than `min_kept` of it is seen.
    """
    corners = boxes.float().reshape(-1, 2, 2)
    corner, size = (corners.new_tensor(values) for values in (place.corner, place.size))
    moved = (corners - corner) * place.zoom
    mirrored = torch.tensor(place.mirrored, device=boxes.device)
    moved = torch.where(mirrored, (size - moved).flip(1), moved)
    moved = moved.flip(2) if place.turned else moved
    cut = torch.minimum(moved.clamp(min=0), size)
    sides, whole = cut[:, 1] - cut[:, 0], moved[:, 1] - moved[:, 0]
    share = sides.prod(dim=1) / whole.prod(dim=1).clamp(min=torch.finfo(torch.float32).tiny)
    kept = (share > min_kept) & (sides >= LEAST_SIDE).all(dim=1)
    return cut[kept].reshape(-1, 4), kept


def plain_boxes(batch: Batch) -> tuple[list[Any], list[Any]]:
    """Boxes and labels of a batch as they are, without those that have no area."""
    boxes, labels = [], []
    for some, own in zip(batch["boxes"], batch["box_label"], strict=True):
        solid = ((some[:, 2:] - some[:, :2]) > 0).all(dim=1)
        boxes.append(some[solid].float())
        labels.append(own[solid])
    return boxes, labels
