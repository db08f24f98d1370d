"""Steps that take a part of an image at the same scale: CenterCrop and RandomCrop. Outside of the image is `fill`."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from penstock.augment.options import Size, checked_size, checked_whole
from penstock.augment.steps import Shape, Uniforms, drawn_whole
from penstock.augment.views import Numbers, Views, window_views
from penstock.geometry import LARGEST_SIDE


@dataclass(frozen=True)
class CenterCrop:
    """The middle of the image; a smaller image stands in the middle of `fill`.

    Where the margins cannot be equal, the left or upper one is a pixel smaller.
    """

    shape: ClassVar[Shape] = "crop"
    uniform_count: ClassVar[int] = 0
    padding: ClassVar[int] = 0

    size: Size
    _: KW_ONLY
    fill: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", checked_size(self.size))
        object.__setattr__(self, "fill", checked_whole("fill", self.fill, most=255))

    @property
    def output_size(self) -> tuple[int, int]:
        return checked_size(self.size)

    def views(self, sizes: Numbers, uniforms: Uniforms) -> Views:
        size = np.full_like(sizes, self.output_size)
        room = sizes - size
        corner = np.sign(room) * (np.abs(room) // 2)
        return window_views(np.concatenate([corner, size], axis=1), sizes, self.fill)


@dataclass(frozen=True)
class RandomCrop:
    """A random part of one size, of the image with `padding` pixels of `fill` on each side.

    An image that is smaller even so lies whole at a random place in `fill`.
    """

    shape: ClassVar[Shape] = "crop"
    uniform_count: ClassVar[int] = 2

    size: Size
    _: KW_ONLY
    padding: int = 0
    fill: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", checked_size(self.size))
        object.__setattr__(self, "padding", checked_whole("padding", self.padding, most=LARGEST_SIDE))
        object.__setattr__(self, "fill", checked_whole("fill", self.fill, most=255))

    @property
    def output_size(self) -> tuple[int, int]:
        return checked_size(self.size)

    def views(self, sizes: Numbers, uniforms: Uniforms) -> Views:
        size = np.full_like(sizes, self.output_size)
        # Where the crop is at the one end and at the other end of the padded image.
        ends = np.stack([np.full_like(sizes, -self.padding), sizes + self.padding - size])
        first, last = ends.min(axis=0), ends.max(axis=0)
        corner = first + drawn_whole(uniforms, last - first + 1)
        return window_views(np.concatenate([corner, size], axis=1), sizes, self.fill)
