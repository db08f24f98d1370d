"""Frames of video made small RGB by the kernel: planes of 8-bit YUV in, one call without the GIL for each frame.

Each plane goes straight to the target size: along a side that shrinks a value is the mean of what it covers, along
one that grows (chroma may) the bilinear mean of two. Then the file's matrix makes colours of the small planes. All of
it is fixed point with parts of a level, rounded once at the end.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.codecs import kernel
from penstock.geometry import Window

Pixels = NDArray[np.uint8]

_MATRIX_SCALE = 1 << 13
_FULL = 2  # of ISO/IEC 23091-2, as FFmpeg uses it
# What red and blue have of luma, by number of ISO/IEC 23091-2.
_LUMA_SHARES = {1: (0.2126, 0.0722), 5: (0.299, 0.114), 6: (0.299, 0.114), 9: (0.2627, 0.0593)}
# Into how few values chroma is brought, across and down: so many bits fewer.
_CHROMA_BITS = {
    f"yuv{kind}{name}p": bits
    for name, bits in (("420", (1, 1)), ("422", (1, 0)), ("444", (0, 0)))
    for kind in ("", "j")
}


class Siting(NamedTuple):
    """How far chroma lies before the centre of its pixels, in quarters of its own values."""

    across: int
    down: int


class Look(NamedTuple):
    """What the pixels of a frame depend on beside its planes."""

    format: str
    matrix: int
    value_range: int


class Reduction(NamedTuple):
    """The arguments of the kernel for all frames of one look and size."""

    window: Window
    chroma: tuple[int, int, int, int]  # bits across and down, quarters across and down
    matrix: tuple[int, int, int, int, int, int]
    size: tuple[int, int]


def sitings(format_name: str) -> list[Siting]:
    """Where chroma of this format may lie; nowhere if the kernel cannot reduce it or is not built."""
    bits = _CHROMA_BITS.get(format_name)
    if bits is None or kernel.native_extension() is None:
        return []
    across, down = ((0, 1) if bits[0] else (0,)), ((0, 1, -1) if bits[1] else (0,))
    return [Siting(x, y) for y in down for x in across]


@functools.lru_cache(256)
def reduction_of(look: Look, siting: Siting, window: Window, size: tuple[int, int]) -> Reduction | None:
    """How the kernel reduces a window to a size; None where it cannot, or where nothing shrinks."""
    bits, shares = _CHROMA_BITS.get(look.format), _LUMA_SHARES.get(look.matrix)
    if bits is None or shares is None or not _has_whole_chroma(window, bits):
        return None
    grows = size[0] > window.width or size[1] > window.height
    if grows or size == (window.width, window.height):
        return None
    is_full = look.value_range == _FULL or look.format.startswith("yuvj")
    return Reduction(window, (*bits, *siting), _matrix(*shares, is_full=is_full), size)


def _has_whole_chroma(window: Window, bits: tuple[int, int]) -> bool:
    across, down = 1 << bits[0], 1 << bits[1]
    return not (window.x % across or window.width % across or window.y % down or window.height % down)


def _matrix(red: float, blue: float, *, is_full: bool) -> tuple[int, int, int, int, int, int]:
    """Black, and what one level of Y has of grey, of V in red, of U and V in green, of U in blue."""
    luma, chroma = (1.0, 1.0) if is_full else (255 / 219, 255 / 224)
    green = 1 - red - blue
    of_v, of_u = 2 * (1 - red) * chroma, 2 * (1 - blue) * chroma
    numbers = (luma, of_v, -of_u * blue / green, -of_v * red / green, of_u)
    y, red_of_v, green_of_u, green_of_v, blue_of_u = (round(number * _MATRIX_SCALE) for number in numbers)
    return (0 if is_full else 16, y, red_of_v, green_of_u, green_of_v, blue_of_u)


def reduced_planes(planes: Sequence[Any], reduction: Reduction, out: Pixels | None) -> Pixels | None:
    """The planes of a frame as H×W×3 RGB, in `out` where that is given; None where lines are stored upwards."""
    luma, blue, red = planes
    lines = luma.line_size, blue.line_size, red.line_size
    if min(lines) < 0:
        return None
    width, height = reduction.size
    pixels = np.empty((height, width, 3), np.uint8) if out is None else out
    native: Any = kernel.native_extension()
    native.planes_to_rgb((luma, blue, red), lines, *reduction, pixels)
    return pixels
