"""Random changes of clips on the device: one choice for each clip, the same for all its frames.

Drawn from (seed, epoch, sample), so that they are the same however a batch was made or dealt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import affine_grid, grid_sample

from penstock.errors import require
from penstock.tasks.device_pixels import sample_numbers
from penstock.tasks.task import Batch

# Far from the numbers of other steps, so that no two of them draw alike.
CLIP_STEP = 1_000_101
DRAWN = 9


@dataclass(frozen=True)
class ClipChanges:
    """How far clips may be changed; see the settings of Behaviour."""

    flip: float
    vertical_flip: float
    rotation: float
    brightness: float
    contrast: float
    saturation: float
    hue: float
    grey: float


def changed_clips(batch: Batch, changes: ClipChanges, *, seed: int, epoch: int) -> Batch:
    """The batch with clips (N×T×H×W×3 of uint8) as floats from 0 to 1, changed."""
    images = batch["image"]
    if not len(images):
        return batch
    drawn = torch.from_numpy(sample_numbers(batch, seed, epoch, CLIP_STEP, DRAWN)).to(images.device, torch.float32)
    pixels = images.permute(0, 1, 4, 2, 3).float() / 255
    pixels = _moved(pixels, changes, drawn)
    pixels = _coloured(pixels.flatten(0, 1), changes, drawn.repeat_interleave(images.shape[1], dim=0))
    return {**batch, "image": pixels.unflatten(0, images.shape[:2]).permute(0, 1, 3, 4, 2)}


def _moved(pixels: torch.Tensor, changes: ClipChanges, drawn: torch.Tensor) -> torch.Tensor:
    """Mirrored and turned around the middle; what comes from outside is the border's colour."""
    across = torch.where(drawn[:, 0] < changes.flip, -1.0, 1.0)
    down = torch.where(drawn[:, 1] < changes.vertical_flip, -1.0, 1.0)
    if not changes.rotation:
        return _mirrored(pixels, across, down)
    count, frames, channels, height, width = pixels.shape
    angle = torch.deg2rad((2 * drawn[:, 2] - 1) * changes.rotation)
    cosine, sine, shape = angle.cos(), angle.sin(), width / height
    nothing = torch.zeros_like(angle)
    rows = [
        torch.stack([across * cosine, -across * sine / shape, nothing], dim=1),
        torch.stack([down * sine * shape, down * cosine, nothing], dim=1),
    ]
    # Frames as channels: one grid serves them all.
    grid = affine_grid(torch.stack(rows, dim=1), [count, frames * channels, height, width], align_corners=False)
    turned: torch.Tensor = grid_sample(pixels.flatten(1, 2), grid, padding_mode="border", align_corners=False)
    return turned.unflatten(1, (frames, channels))


def _mirrored(pixels: torch.Tensor, across: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    shape = (-1, 1, 1, 1, 1)
    pixels = torch.where(across.view(shape) < 0, pixels.flip(-1), pixels)
    return torch.where(down.view(shape) < 0, pixels.flip(-2), pixels)


def _coloured(pixels: torch.Tensor, changes: ClipChanges, drawn: torch.Tensor) -> torch.Tensor:
    enhance: Any = require("kornia.enhance", "train", "Changing colours")
    signed = 2 * drawn - 1
    if changes.brightness:
        pixels = enhance.adjust_brightness_accumulative(pixels, 1 + changes.brightness * signed[:, 3])
    if changes.contrast:
        pixels = enhance.adjust_contrast_with_mean_subtraction(pixels, 1 + changes.contrast * signed[:, 4])
    if changes.saturation:
        pixels = enhance.adjust_saturation_with_gray_subtraction(pixels, 1 + changes.saturation * signed[:, 5])
    if changes.hue:
        pixels = enhance.adjust_hue(pixels, signed[:, 6] * changes.hue * 2 * torch.pi)
    if changes.grey:
        colour: Any = require("kornia.color", "train", "Changing colours")
        is_grey = (drawn[:, 7] < changes.grey).view(-1, 1, 1, 1)
        pixels = torch.where(is_grey, colour.rgb_to_grayscale(pixels).expand_as(pixels), pixels)
    return pixels
