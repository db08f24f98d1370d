"""The kernel's work in Python: simplejpeg or OpenCV decodes the whole image, the rest follows the same rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.headers import Header, UnreadableImage, read_header
from penstock.codecs.images import decode_image
from penstock.codecs.kernel.resampling import Span, resampled
from penstock.codecs.kernel.targets import HORIZONTAL, VERTICAL, Failure, Reduced, Target, level_table
from penstock.codecs.opencv import opencv
from penstock.geometry import Window

MOST_PIXELS = 2**28  # as in c/kernel.h: a damaged header must not ask for gigabytes
LEAST_REDUCED_SIDE = 16  # below it a scaled size does not tell which scale it came from


def libraries() -> str:
    """The decoders and their versions."""
    import simplejpeg

    return f"simplejpeg {simplejpeg.__version__} + OpenCV {opencv().__version__}"


def decode_positions(
    positions: Iterable[int],
    sources: Sequence[Any],
    crops: NDArray[np.int32],
    flips: NDArray[np.uint8],
    out: NDArray[Any],
    target: Target,
    *,
    reduced: Reduced,
) -> list[Failure]:
    """Make these samples of a range; the arguments were checked."""
    failures = []
    for position in positions:
        crop = Window(*crops[position].tolist())
        try:
            pixels = _sample(memoryview(sources[position]).cast("B"), crop, target, reduced)
        except UnreadableImage as error:
            failures.append(Failure(position, str(error)))
        else:
            _write(out[position], _flipped(pixels, int(flips[position])), target)
    return failures


def _sample(data: memoryview, crop: Window, target: Target, reduced: Reduced) -> NDArray[np.uint8]:
    header = read_header(data)
    _check(header, crop)
    factor = _reduction(header, crop, target) if reduced == "when-twice" else 1
    pixels = decode_image(data, at_least=_scaled(header, factor) if factor > 1 else None)
    factor = _factor(header, factor, pixels)
    height, width = pixels.shape[:2]
    x = _span(crop.x, crop.width, header.width, width, factor, header.orientation in (2, 3, 6, 7))
    y = _span(crop.y, crop.height, header.height, height, factor, header.orientation in (3, 4, 7, 8))
    return resampled(pixels, x, y, target.width, target.height)


def _check(header: Header, crop: Window) -> None:
    if header.width * header.height > MOST_PIXELS:
        raise UnreadableImage(f"{header.width}×{header.height} px are more than the {MOST_PIXELS} that are decoded")
    x, y, width, height = crop
    inside = 0 <= x <= header.width - width and 0 <= y <= header.height - height and width > 0 and height > 0
    if not inside:
        raise UnreadableImage(
            f"the crop of {width}×{height} px at {x},{y} is not inside the image of {header.width}×{header.height} px"
        )


def _reduction(header: Header, crop: Window, target: Target) -> int:
    """The largest of 2, 4 and 8 by which the crop of a JPEG is too large in both directions, or 1."""
    scalable = header.kind == "jpeg" and header.channels in (1, 3) and header.bits == 8
    if not scalable or min(header.width, header.height) < LEAST_REDUCED_SIDE:
        return 1
    factors = [f for f in (8, 4, 2) if crop.width >= f * target.width and crop.height >= f * target.height]
    return factors[0] if factors else 1


def _scaled(header: Header, factor: int) -> tuple[int, int]:
    return -(-header.width // factor), -(-header.height // factor)


def _factor(header: Header, wished: int, pixels: NDArray[np.uint8]) -> int:
    """By how much the pixels are reduced: OpenCV, where simplejpeg refused, decodes them all."""
    height, width = pixels.shape[:2]
    for factor in (wished, 1):
        if (width, height) == _scaled(header, factor):
            return factor
    raise UnreadableImage(f"its header says {header.width}×{header.height} px, and it has {width}×{height}")


def _span(start: int, length: int, full: int, decoded: int, factor: int, is_reversed: bool) -> Span:
    """A crop along one axis of the decoded pixels. Reduced pixels count from where the stored image begins."""
    if is_reversed:
        return Span(decoded - (full - start) / factor, length / factor)
    return Span(start / factor, length / factor)


def _flipped(pixels: NDArray[np.uint8], flip: int) -> NDArray[np.uint8]:
    if flip & HORIZONTAL:
        pixels = pixels[:, ::-1]
    return pixels[::-1] if flip & VERTICAL else pixels


def _write(sample: NDArray[Any], pixels: NDArray[np.uint8], target: Target) -> None:
    if target.layout == "hwc-uint8":
        sample[:] = pixels
        return
    for plane, table, channel in zip(sample, level_table(target), np.moveaxis(pixels, 2, 0), strict=True):
        plane[:] = table[channel]
