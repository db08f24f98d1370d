"""What a geometric step does to an image, as numbers: which part of it, at what size, which part of that, turned how.

    image ──crop──► crop ──resize──► resized ──part──► out ──flip──► out

Each geometric step is one such view of what it gets. Several in a row are often one view too, and then the
decoder needs to decode only what is seen (`composing`). Views are computed for a whole range of samples at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

HORIZONTAL, VERTICAL = 1, 2  # bits of a flip


@dataclass(frozen=True)
class Views:
    """One view for each of n samples, in whole pixels.

    The crop lies inside the image. The part may reach outside of what was resized: there it is `fill`.
    """

    crops: NDArray[np.int64]  # n×4: x, y, width, height, in the image
    resized: NDArray[np.int64]  # n×2: width, height
    parts: NDArray[np.int64]  # n×4: x, y, width, height, in what was resized
    flips: NDArray[np.uint8]  # n: bit 0 horizontal, bit 1 vertical
    fill: int = 0

    def __len__(self) -> int:
        return len(self.flips)

    def span(self, start: int, stop: int) -> Views:
        """The views of samples start to stop."""
        rows = slice(start, stop)
        return Views(self.crops[rows], self.resized[rows], self.parts[rows], self.flips[rows], self.fill)

    @property
    def sizes(self) -> Numbers:
        """n×2: width and height of what comes out."""
        return self.parts[:, 2:]

    @property
    def kernel_crops(self) -> Numbers:
        """n×8 as the kernel takes them: the crop, the resized size, where the part begins."""
        return np.concatenate([self.crops, self.resized, self.parts[:, :2]], axis=1)

    @property
    def is_scaled(self) -> bool:
        """Whether any of the views changes the scale."""
        return bool((self.resized != self.crops[:, 2:]).any())

    @property
    def is_padded(self) -> bool:
        """Whether any of the views shows something outside of its image."""
        return bool((self.parts[:, :2] < 0).any() or (self.parts[:, :2] + self.parts[:, 2:] > self.resized).any())

    def turned(self, flips: NDArray[np.uint8]) -> Views:
        """The same views, flipped once more."""
        return replace(self, flips=self.flips ^ flips)


def whole_views(sizes: Numbers) -> Views:
    """Views that change nothing, of images with these widths and heights."""
    whole = np.concatenate([np.zeros_like(sizes), sizes], axis=1)
    return Views(whole, sizes, whole, np.zeros(len(sizes), np.uint8))


def resized_views(crops: Numbers, resized: Numbers) -> Views:
    """Views of crops inside of their images, resized."""
    parts = np.concatenate([np.zeros_like(resized), resized], axis=1)
    return Views(crops, resized, parts, np.zeros(len(crops), np.uint8))


def window_views(windows: Numbers, sizes: Numbers, fill: int = 0) -> Views:
    """Views of windows (x, y, width, height) that may reach outside of images of these sizes, at the same scale.

    The crop is what the window shows of the image; of an image that it misses it is one pixel that nothing shows.
    """
    first = np.clip(windows[:, :2], 0, sizes - 1)
    end = np.clip(windows[:, :2] + windows[:, 2:], first + 1, sizes)
    parts = np.concatenate([windows[:, :2] - first, windows[:, 2:]], axis=1)
    flips = np.zeros(len(windows), np.uint8)
    return Views(np.concatenate([first, end - first], axis=1), end - first, parts, flips, fill)
