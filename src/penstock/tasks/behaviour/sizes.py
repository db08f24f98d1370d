"""The sizes that a behaviour model comes in, as plain facts: what is looked with, and how wide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SizeName = Literal["tiny", "fast", "medium", "slow"]


@dataclass(frozen=True)
class Size:
    """What a size is made of.

    backbone        the network of torchvision whose weights its streams begin with
    motion_width    channels of the first map of the motion network
    sees_clips      the spatial stream sees all frames of a clip, not the middle one alone
    """

    backbone: str
    motion_width: int
    sees_clips: bool = False


SIZES: dict[str, Size] = {
    "tiny": Size("mobilenet_v2", 8),
    "fast": Size("resnet18", 16),
    "medium": Size("resnet50", 24),
    "slow": Size("resnet34", 16, sees_clips=True),
}

# What DeepEthogram calls its sizes.
DEEPETHOGRAM_SIZES = {"deg_f": "fast", "deg_m": "medium", "deg_s": "slow"}
