"""The kernel's work in Python: simplejpeg or OpenCV decodes the whole image, the rest follows the same rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.decoding_room import ROOM
from penstock.codecs.headers import Header, UnreadableImage, read_header
from penstock.codecs.images import decode_image
from penstock.codecs.kernel.resampling import Axis, Span, resampled
from penstock.codecs.kernel.targets import HORIZONTAL, MOST_RESIZED, VERTICAL, Failure, Job, Reduced
from penstock.codecs.opencv import opencv
from penstock.geometry import Window

MOST_PIXELS = 2**28  # as in c/kernel.h: a damaged header must not ask for gigabytes
LEAST_REDUCED_SIDE = 16  # below it a scaled size does not tell which scale it came from

Pixels = NDArray[np.uint8]


class View(NamedTuple):
    """What one sample shows: a row of `Job.views`."""

    crop: Window
    width: int
    height: int
    part_x: int
    part_y: int


def libraries() -> str:
    """The decoders and their versions."""
    import simplejpeg

    return f"simplejpeg {simplejpeg.__version__} + OpenCV {opencv().__version__}"


def decode_positions(
    positions: Iterable[int], sources: Sequence[Any], job: Job, *, reduced: Reduced, fast: bool
) -> list[Failure]:
    """Make these samples of a range from encoded images."""
    return _make(
        positions, job, lambda position, view: _decoded(memoryview(sources[position]), view, job, reduced, fast)
    )


def whole_pixels(data: Any) -> Pixels:
    """All pixels of one encoded image, as large as its header says."""
    data = memoryview(data).cast("B")
    header = read_header(data)
    _check_size(header.width, header.height)
    pixels = decode_image(data)
    _factor(header, 1, pixels)
    return np.ascontiguousarray(pixels)


def pick_positions(buffers: Sequence[Any], places: NDArray[np.int64], job: Job) -> list[Failure]:
    """Make all samples of a range from raw pixels."""
    named = {number for number in np.unique(places[:, 0]).tolist() if 0 <= number < len(buffers)}
    levels = {number: np.frombuffer(buffers[number], np.uint8) for number in named}
    rows = places.tolist()
    return _make(
        range(len(places)), job, lambda position, view: _picked(levels, len(buffers), rows[position], view, job)
    )


def _make(positions: Iterable[int], job: Job, sample: Callable[[int, View], Pixels]) -> list[Failure]:
    failures = []
    for position in positions:
        x, y, width, height, *rest = job.views[position].tolist()
        try:
            with ROOM.sample():
                pixels = sample(position, View(Window(x, y, width, height), *rest))
        except UnreadableImage as error:
            failures.append(Failure(position, str(error)))
        else:
            _write(job, position, pixels)
    return failures


def _decoded(data: memoryview, view: View, job: Job, reduced: Reduced, fast: bool) -> Pixels:
    data = data.cast("B")
    header = read_header(data)
    _check(header.width, header.height, view)
    factor = _reduction(header, view) if reduced == "when-twice" else 1
    pixels = decode_image(data, at_least=_scaled(header, factor) if factor > 1 else None, fast=fast)
    factor = _factor(header, factor, pixels)
    decoded_height, decoded_width = pixels.shape[:2]
    x, y, width, height = view.crop
    across = _span(x, width, header.width, decoded_width, factor, header.orientation in (2, 3, 6, 7))
    down = _span(y, height, header.height, decoded_height, factor, header.orientation in (3, 4, 7, 8))
    return _seen(pixels, across, down, view, job)


def _picked(levels: dict[int, Pixels], buffer_count: int, place: list[int], view: View, job: Job) -> Pixels:
    number, offset, width, height = place
    if number not in levels:
        raise UnreadableImage(f"there is no buffer {number} among {buffer_count}")
    if min(width, height) < 1 or width * height > MOST_PIXELS:
        raise UnreadableImage(f"an image cannot have {width}×{height} px, only 1 to {MOST_PIXELS} in all")
    end = offset + width * height * 3
    if offset < 0 or end > len(levels[number]):
        raise UnreadableImage(
            f"the image of {width}×{height} px at byte {offset} is not inside its buffer of {len(levels[number])} bytes"
        )
    _check(width, height, view)
    pixels = levels[number][offset:end].reshape(height, width, 3)
    x, y = Span(view.crop.x, view.crop.width), Span(view.crop.y, view.crop.height)
    return _seen(pixels, x, y, view, job)


def _check_size(width: int, height: int) -> None:
    if width * height > MOST_PIXELS:
        raise UnreadableImage(f"{width}×{height} px are more than the {MOST_PIXELS} that are decoded")


def _check(width: int, height: int, view: View) -> None:
    _check_size(width, height)
    x, y, w, h = view.crop
    if not (0 <= x <= width - w and 0 <= y <= height - h and w > 0 and h > 0):
        raise UnreadableImage(f"the crop of {w}×{h} px at {x},{y} is not inside the image of {width}×{height} px")
    if not (1 <= view.width <= MOST_RESIZED and 1 <= view.height <= MOST_RESIZED):
        raise UnreadableImage(
            f"a crop cannot be resized to {view.width}×{view.height} px, only to 1×1 to {MOST_RESIZED}×{MOST_RESIZED}"
        )


def _reduction(header: Header, view: View) -> int:
    """The largest of 2, 4 and 8 by which the crop of a JPEG is too large in both directions, or 1."""
    scalable = header.kind == "jpeg" and header.channels in (1, 3) and header.bits == 8
    if not scalable or min(header.width, header.height) < LEAST_REDUCED_SIDE:
        return 1
    crop = view.crop
    factors = [f for f in (8, 4, 2) if crop.width >= f * view.width and crop.height >= f * view.height]
    return factors[0] if factors else 1


def _scaled(header: Header, factor: int) -> tuple[int, int]:
    return -(-header.width // factor), -(-header.height // factor)


def _factor(header: Header, wished: int, pixels: Pixels) -> int:
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


def _seen(pixels: Pixels, x: Span, y: Span, view: View, job: Job) -> Pixels:
    """The part that a view shows, with the fill around it."""
    across = Axis.of(x, view.width, view.part_x, job.target.width)
    down = Axis.of(y, view.height, view.part_y, job.target.height)
    sample = np.full((job.target.height, job.target.width, 3), job.fill, np.uint8)
    if across.made and down.made:
        rows, columns = slice(down.lead, down.lead + down.made), slice(across.lead, across.lead + across.made)
        sample[rows, columns] = resampled(pixels, across, down)
    return sample


def _flipped(pixels: Pixels, flip: int) -> Pixels:
    if flip & HORIZONTAL:
        pixels = pixels[:, ::-1]
    return pixels[::-1] if flip & VERTICAL else pixels


def _write(job: Job, position: int, pixels: Pixels) -> None:
    pixels = _flipped(pixels, int(job.flips[position]))
    if job.table is None:
        job.out[position] = pixels
        return
    for plane, table, channel in zip(job.out[position], job.table, np.moveaxis(pixels, 2, 0), strict=True):
        plane[:] = table[channel]
