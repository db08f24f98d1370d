"""The sizes that a behaviour model comes in, as plain facts: what is looked with, and how wide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SizeName = Literal["tiny", "fast", "medium", "slow"]

# Networks halve their input five times: sides that do not divide so are cut off unevenly.
LEGAL_STEP = 32


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


def nearest_legal(length: int) -> int:
    """The side that networks take which is nearest to a given one."""
    return max(LEGAL_STEP, round(length / LEGAL_STEP) * LEGAL_STEP)


def is_legal(width: int, height: int) -> bool:
    return width > 0 and height > 0 and width % LEGAL_STEP == 0 and height % LEGAL_STEP == 0
