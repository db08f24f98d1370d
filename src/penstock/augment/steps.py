"""What the two kinds of steps have in common: random numbers come in from outside, and n samples are done at once."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from penstock.augment.views import Views

Uniforms = NDArray[np.float64]

# crop: a part at the same scale, which may be padded; resize: a part brought to another size; flip: all of it, turned
Shape = Literal["crop", "resize", "flip"]


@runtime_checkable
class Geometric(Protocol):
    """A step that moves pixels: images, masks and boxes follow the same view."""

    shape: ClassVar[Shape]

    @property
    def uniform_count(self) -> int:
        """How many random numbers each sample needs; 0 for a step that is not random."""
        ...

    @property
    def output_size(self) -> tuple[int, int] | None:
        """Width and height of what comes out, where they do not depend on the image."""
        ...

    def views(self, sizes: NDArray[np.int64], uniforms: Uniforms) -> Views:
        """The view of each of n images: sizes are n×2 (width, height), uniforms n×uniform_count in [0, 1)."""
        ...


@runtime_checkable
class Pixelwise(Protocol):
    """A step that changes what a pixel is and leaves it where it is."""

    @property
    def uniform_count(self) -> int:
        """How many random numbers each sample needs; 0 for a step that is not random."""
        ...

    def pixels(self, images: NDArray[Any], uniforms: Uniforms) -> NDArray[Any]:
        """n×(frames×)H×W×3 of uint8, changed; uniforms are n×uniform_count in [0, 1)."""
        ...


def is_geometric(step: object) -> TypeGuard[Geometric]:
    """Whether a step moves pixels. Asked for every sample, and `isinstance` of a protocol is slow."""
    return hasattr(step, "views")


def drawn_whole(uniforms: Uniforms, count: NDArray[np.int64]) -> NDArray[np.int64]:
    """A whole number from 0 to count−1, all equally likely; a uniform below 1 times a count stays below the count."""
    whole: NDArray[np.int64] = np.floor(uniforms * count).astype(np.int64)
    return whole
