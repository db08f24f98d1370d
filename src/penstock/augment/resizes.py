"""Steps that bring an image to another size: Resize and RandomResizedCrop."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from penstock.augment.options import Size, checked_range, checked_side, checked_size
from penstock.augment.steps import Shape, Uniforms, drawn_whole
from penstock.augment.views import Numbers, Views, resized_views
from penstock.errors import one_of

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
