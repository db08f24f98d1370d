"""The one filter with which packing changes sizes, and the arithmetic of target sizes.

Shrinking averages the pixels that fall together (area); enlarging interpolates (bilinear). Masks take the
nearest pixel, so that no class number is invented.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from penstock.codecs.opencv import opencv

Pixels = NDArray[Any]


def resized(pixels: Pixels, width: int, height: int, *, nearest: bool = False) -> Pixels:
    """The same picture with another number of pixels."""
    cv2 = opencv()

    if pixels.shape[:2] == (height, width):
        return pixels
    if nearest:
        how = cv2.INTER_NEAREST
    else:
        how = cv2.INTER_AREA if height <= pixels.shape[0] and width <= pixels.shape[1] else cv2.INTER_LINEAR
    out: Pixels = cv2.resize(pixels, (width, height), interpolation=how)
    return out


def side_target(width: int, height: int, longest: int | None, shortest: int | None) -> tuple[int, int]:
    """The size after bringing the longest or shortest side to a length; images are never enlarged."""
    side = longest if longest is not None else shortest
    if side is None:
        return width, height
    current = max(width, height) if longest is not None else min(width, height)
    if current <= side:
        return width, height
    return max(1, round(width * side / current)), max(1, round(height * side / current))
