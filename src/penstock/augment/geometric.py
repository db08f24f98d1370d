"""Geometric steps: Resize, RandomResizedCrop, CenterCrop, RandomCrop and flips."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from penstock.augment.options import Size, checked_probability, checked_range, checked_side, checked_size, checked_whole
from penstock.augment.steps import Shape, Uniforms, drawn_whole
from penstock.augment.views import HORIZONTAL, VERTICAL, Numbers, Views, resized_views, whole_views, window_views
from penstock.errors import one_of
from penstock.geometry import LARGEST_SIDE

# Steps that take a part of an image at the same scale: CenterCrop and RandomCrop. Outside of the image is `fill`.


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


# Steps that turn an image over: HorizontalFlip and VerticalFlip.


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


# Steps that bring an image to another size: Resize and RandomResizedCrop.


Side = Literal["exact", "shortest", "longest"]

TRIES = 10
FIRST_TRIES = 2  # most images need no more, so the others are worked out for the rest alone


@dataclass(frozen=True)
class Resize:
    """The whole image at another size.

    `exact` takes a size (one number: a square); `shortest` and `longest` take the length of that side, and the
    other one keeps the proportions, rounded. Small images are enlarged.
    """

    shape: ClassVar[Shape] = "resize"
    uniform_count: ClassVar[int] = 0

    size: Size
    _: KW_ONLY
    side: Side = "exact"

    def __post_init__(self) -> None:
        one_of("side", self.side, get_args(Side))
        size = checked_size(self.size) if self.side == "exact" else checked_side(self.size, f"side={self.side!r}")
        object.__setattr__(self, "size", size)

    @property
    def output_size(self) -> tuple[int, int] | None:
        return self.size if isinstance(self.size, tuple) else None

    @property
    def least_size(self) -> tuple[int, int]:
        """What width and height come out at least, whatever the image."""
        if isinstance(self.size, int) and self.side == "shortest":
            return self.size, self.size
        return self.output_size or (1, 1)

    def views(self, sizes: Numbers, uniforms: Uniforms) -> Views:
        whole = np.concatenate([np.zeros_like(sizes), sizes], axis=1)
        return resized_views(whole, self._resized(sizes))

    def _resized(self, sizes: Numbers) -> Numbers:
        if not isinstance(self.size, int):
            return np.full_like(sizes, checked_size(self.size))
        current = (sizes.min if self.side == "shortest" else sizes.max)(axis=1, keepdims=True)
        rounded: Numbers = np.maximum(np.rint(sizes * self.size / current), 1).astype(np.int64)
        return rounded


@dataclass(frozen=True)
class RandomResizedCrop:
    """A random part of the image, brought to one size.

    Its share of the image's area is uniform within `scale`, its width divided by its height log-uniform within
    `ratio`. Of ten tries the first that fits into the image is taken, anywhere in it; where none does, the central
    part with the nearest ratio that is allowed.
    """

    shape: ClassVar[Shape] = "resize"
    uniform_count: ClassVar[int] = 2 * TRIES + 2

    size: Size
    _: KW_ONLY
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", checked_size(self.size))
        object.__setattr__(self, "scale", checked_range("scale", self.scale, most=1))
        object.__setattr__(self, "ratio", checked_range("ratio", self.ratio))

    @property
    def output_size(self) -> tuple[int, int]:
        return checked_size(self.size)

    def views(self, sizes: Numbers, uniforms: Uniforms) -> Views:
        areas, ratios, places = uniforms[:, :TRIES], uniforms[:, TRIES : 2 * TRIES], uniforms[:, 2 * TRIES :]
        chosen, found = self._first_that_fits(sizes, areas[:, :FIRST_TRIES], ratios[:, :FIRST_TRIES])
        rest = np.flatnonzero(~found)
        chosen[rest], found[rest] = self._first_that_fits(sizes[rest], areas[rest], ratios[rest])
        crop = chosen if found.all() else np.where(found, chosen, self._central(sizes))
        room = sizes - crop
        corner = np.where(found, drawn_whole(places, room + 1), room // 2)
        resized = np.full_like(sizes, self.output_size)
        return resized_views(np.concatenate([corner, crop], axis=1), resized)

    def _first_that_fits(self, sizes: Numbers, areas: Uniforms, ratios: Uniforms) -> tuple[Numbers, NDArray[np.bool_]]:
        """Width and height of the first try that fits into its image, n×2, and whether there is one, n×1."""
        tried = self._tried(sizes, areas, ratios)
        fits = np.all((tried > 0) & (tried <= sizes[:, None]), axis=2)
        return tried[np.arange(len(sizes)), fits.argmax(axis=1)], np.any(fits, axis=1, keepdims=True)

    def _tried(self, sizes: Numbers, areas: Uniforms, ratios: Uniforms) -> Numbers:
        """Width and height of every try, n×tries×2."""
        smallest, largest = self.scale
        narrow, wide = (math.log(value) for value in self.ratio)
        area = sizes.prod(axis=1)[:, None] * (smallest + areas * (largest - smallest))
        ratio = np.exp(narrow + ratios * (wide - narrow))
        tried: Numbers = np.rint(np.sqrt(np.stack([area * ratio, area / ratio], axis=2))).astype(np.int64)
        return tried

    def _central(self, sizes: Numbers) -> Numbers:
        """The largest size inside of each image whose ratio is allowed."""
        width, height = sizes.T
        least, most = self.ratio
        wide: NDArray[np.float64] = np.minimum(width, np.rint(height * most))
        high: NDArray[np.float64] = np.minimum(height, np.rint(width / least))
        return np.maximum(np.stack([wide, high], axis=1), 1).astype(np.int64)
