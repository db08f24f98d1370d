"""Channel means and deviations from whole-number sums: exact, whatever the order they are added in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.opencv import opencv

# Statistics of a pack whose images are not decoded anyway come from this many of them.
SAMPLE_COUNT = 500


@dataclass(frozen=True)
class ChannelSums:
    """Of all pixels seen: how many, their sum and the sum of their squares, for each channel."""

    images: int = 0
    pixels: int = 0
    sums: tuple[int, int, int] = (0, 0, 0)
    squares: tuple[int, int, int] = (0, 0, 0)

    def __add__(self, other: ChannelSums) -> ChannelSums:
        return ChannelSums(
            self.images + other.images,
            self.pixels + other.pixels,
            _added(self.sums, other.sums),
            _added(self.squares, other.squares),
        )

    def times(self, weight: int) -> ChannelSums:
        """The same sums counted so many times, for an image that was seen at a fraction of its pixels."""
        return ChannelSums(self.images, self.pixels * weight, _scaled(self.sums, weight), _scaled(self.squares, weight))

    def as_dict(self) -> dict[str, Any]:
        return {"images": self.images, "pixels": self.pixels, "sums": self.sums, "squares": self.squares}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ChannelSums:
        return cls(values["images"], values["pixels"], tuple(values["sums"]), tuple(values["squares"]))

    def mean_and_std(self) -> tuple[list[float], list[float]]:
        """Of values 0 to 255; zeros when nothing was seen."""
        if self.pixels == 0:
            return [0.0] * 3, [0.0] * 3
        mean = [total / self.pixels for total in self.sums]
        # In whole numbers first: the difference of two large floats would lose the small deviation.
        variance = [
            (square * self.pixels - total * total) / self.pixels**2
            for total, square in zip(self.sums, self.squares, strict=True)
        ]
        return mean, [max(value, 0.0) ** 0.5 for value in variance]


def channel_sums(pixels: NDArray[np.uint8]) -> ChannelSums:
    """The exact sums of one H×W×3 image.

    OpenCV adds 8-bit pixels as whole numbers and returns mean and deviation as float64; multiplying by the
    number of pixels and rounding gives the whole numbers back (exact up to 10⁹ pixels), fifty times faster
    than numpy adds strided channels.
    """
    count = pixels.shape[0] * pixels.shape[1]
    mean, deviation = opencv().meanStdDev(pixels)
    mean, deviation = mean.ravel(), deviation.ravel()
    sums = np.rint(mean * count)
    squares = np.rint((deviation**2 + mean**2) * count)
    return ChannelSums(1, count, _whole(sums), _whole(squares))


def _whole(values: NDArray[np.float64]) -> tuple[int, int, int]:
    first, second, third = (int(value) for value in values)
    return first, second, third


def _scaled(values: tuple[int, int, int], weight: int) -> tuple[int, int, int]:
    return values[0] * weight, values[1] * weight, values[2] * weight


def _added(left: tuple[int, int, int], right: tuple[int, int, int]) -> tuple[int, int, int]:
    return left[0] + right[0], left[1] + right[1], left[2] + right[2]
