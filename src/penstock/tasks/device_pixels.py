"""What happens to images on the device, a whole batch at once: random changes of colour, and normalising.

Colours are drawn from (seed, epoch, sample), so that they are the same however a batch was made or dealt.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from penstock.augment.pixelwise import Channels
from penstock.errors import require
from penstock.seeds import sample_uniforms
from penstock.tasks.task import Batch

# Far from the numbers of a flow's own steps, so that no two of them draw alike.
COLOUR_STEP = 1_000_001


def with_other_colours(batch: Batch, *, strength: float, hue: float, seed: int, epoch: int) -> Batch:
    """The batch with images as floats from 0 to 1, changed by up to `strength` in brightness, contrast and saturation,
    and by up to `hue` of a full turn in hue."""
    images = batch["image"]
    if not (strength or hue) or not len(images):
        return batch
    pixels = images.float().permute(0, 3, 1, 2)
    pixels = pixels / 255 if images.dtype == torch.uint8 else pixels
    drawn = torch.from_numpy(sample_numbers(batch, seed, epoch, COLOUR_STEP, 4)).to(pixels.device, torch.float32)
    return {**batch, "image": _changed(pixels, drawn * 2 - 1, strength, hue).permute(0, 2, 3, 1)}


def _changed(pixels: torch.Tensor, drawn: torch.Tensor, strength: float, hue: float) -> torch.Tensor:
    enhance: Any = require("kornia.enhance", "train", "Changing colours")
    if strength:
        factors = 1 + strength * drawn[:, :3]
        pixels = enhance.adjust_brightness_accumulative(pixels, factors[:, 0])
        pixels = enhance.adjust_contrast_with_mean_subtraction(pixels, factors[:, 1])
        pixels = enhance.adjust_saturation_with_gray_subtraction(pixels, factors[:, 2])
    return enhance.adjust_hue(pixels, drawn[:, 3] * hue * 2 * torch.pi) if hue else pixels


def sample_numbers(batch: Batch, seed: int, epoch: int, step: int, count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Random numbers for each sample; where one may come twice in an epoch, `draw` tells the times apart."""
    keys = _numbers(batch["draw"] if "draw" in batch else batch["index"])
    epochs = _numbers(batch["epoch"]) if "epoch" in batch else np.full(len(keys), epoch)
    return sample_uniforms(seed, step, epochs, keys, count)


def _numbers(values: Any) -> np.ndarray[Any, Any]:
    return np.asarray(values.cpu() if isinstance(values, torch.Tensor) else values)


def normalised(images: torch.Tensor, mean: Channels, std: Channels) -> torch.Tensor:
    """What a network takes, of N×H×W×3 images: levels of uint8, or floats from 0 to 1."""
    top = 1.0 if images.dtype == torch.uint8 else 255.0
    # A view with the channels first, whose memory has them last: what convolutions are fastest with.
    pixels = images.float().permute(0, 3, 1, 2)
    middle, spread = (
        torch.tensor(values, dtype=torch.float32, device=images.device).div(top).view(1, 3, 1, 1)
        for values in (mean, std)
    )
    return (pixels - middle) / spread
