"""Steps that turn an image over: HorizontalFlip and VerticalFlip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.augment.options import checked_probability
from penstock.augment.steps import Shape, Uniforms
from penstock.augment.views import HORIZONTAL, VERTICAL, Numbers, Views, whole_views


@dataclass(frozen=True)
class HorizontalFlip:
    """Left and right are exchanged, with probability `p`."""

    shape: ClassVar[Shape] = "flip"
    output_size: ClassVar[None] = None

    p: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", checked_probability(self.p))

    @property
    def uniform_count(self) -> int:
        return needed(self.p)

    def views(self, sizes: Numbers, uniforms: Uniforms) -> Views:
        return whole_views(sizes).turned(chosen(self.p, len(sizes), uniforms) * np.uint8(HORIZONTAL))


@dataclass(frozen=True)
class VerticalFlip:
    """Top and bottom are exchanged, with probability `p`."""

    shape: ClassVar[Shape] = "flip"
    output_size: ClassVar[None] = None

    p: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", checked_probability(self.p))

    @property
    def uniform_count(self) -> int:
        return needed(self.p)

    def views(self, sizes: Numbers, uniforms: Uniforms) -> Views:
        return whole_views(sizes).turned(chosen(self.p, len(sizes), uniforms) * np.uint8(VERTICAL))


def needed(p: float) -> int:
    """How many random numbers a choice needs: none where it is certain."""
    return 0 if p in (0, 1) else 1


def chosen(p: float, count: int, uniforms: Uniforms) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which of the samples a step with probability `p` is done to."""
    if needed(p) == 0:
        return np.full(count, p == 1)
    return np.asarray(uniforms[:, 0] < p)
