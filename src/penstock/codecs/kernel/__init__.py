"""Encoded images or raw pixels to finished samples, a range at a time: decode, resize, flip, write into the batch.

    image ──crop──► crop ──resize──► resized ──part──► sample ──flip──► sample ──normalise──► written

`decode_range` begins with encoded images, `pixels_range` with raw pixels. Two ways lead to the samples, with the
same rules. The C extension (`c/`, over libjpeg-turbo) decodes only the rows and columns that are seen and does not
hold the GIL; what it leaves alone (PNG, WebP, CMYK …) libraries decode for it. `fallback` does the same work with
simplejpeg and OpenCV where the extension is absent. They agree within one level of 255, and exactly where nothing is
resampled.

| what     | rule                                                                                               |
|----------|----------------------------------------------------------------------------------------------------|
| crop     | whole pixels of the upright image; nothing outside the crop has a part in the result               |
| resizing | each axis by itself: bilinear with half-pixel centres up to a factor of two; above it the mean of  |
|          | what a pixel covers, weighted by a triangle, as in Pillow; levels are rounded once, at the end;    |
|          | a crop that keeps its size is copied                                                               |
| part     | what it shows has the bits of the whole resized crop; where it reaches outside, it is `fill`       |
| turned   | an image with an EXIF orientation gives the bits of the same pixels stored upright                 |
| reduced  | `when-twice`: a JPEG whose crop is at least 2, 4 or 8 times as large as what it is resized to, in  |
|          | both directions, is decoded at 1/2, 1/4 or 1/8, which is faster and the better filter, but not     |
|          | the same pixels; `never`: exact, and equal to `pixels_range` of the decoded image                  |
| fast     | the fast integer transform of libjpeg: an approximation, off unless the user asks for it           |
| damage   | whatever the decoder complains about is a failure; damage outside of what is decoded is not seen   |
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.decoding_room import ROOM
from penstock.codecs.headers import Header, UnreadableImage, read_header, sniff
from penstock.codecs.kernel import fallback, targets
from penstock.codecs.kernel.targets import Failure, Job, Layout, Placed, Reduced, Target
from penstock.errors import OptionError, one_of

__all__ = ["Failure", "Layout", "Placed", "Reduced", "Target", "decode_range", "pixels_range", "which"]

SWITCH = "PENSTOCK_KERNEL"
LARGE_FILE_BYTES = 64 << 10  # what is smaller holds no large photograph, and a look at each would cost time
Missed = tuple[int, bool, str]


def decode_range(
    sources: Sequence[Any],
    crops: NDArray[Any],
    flips: NDArray[Any],
    out: NDArray[Any],
    target: Target,
    *,
    reduced: Reduced = "when-twice",
    fill: int = 0,
    fast: bool = False,
) -> list[Failure]:
    """Make sample i of `out` from `sources[i]` (bytes or a buffer; or all of them `Placed`); returns those that failed.

    `crops` is n×4: x, y, width, height of the crop, which is resized to the target; or n×8: then resized width and
    height, and x and y of the part follow. `flips` is n of uint8: bit 0 horizontal, bit 1 vertical.
    """
    one_of("reduced", reduced, get_args(Reduced))
    held = targets.check_sources(sources)
    job = _checked_job(len(held), crops, flips, out, target, fill)
    native = native_extension()
    if native is None:
        return fallback.decode_positions(range(len(held)), held, job, reduced=reduced, fast=fast)
    rest = job.table, target.width, target.height, fill, reduced != "never", fast
    may_wait = not isinstance(held, Placed) or held.has_large
    if may_wait and ROOM.is_counted and any(map(_held_header, _readable(held))):
        missed = _decode_each(native, held, job, rest)
    elif isinstance(held, Placed):
        missed = native.decode_places(held.buffers, held.places, job.views, job.flips, out, *rest)
    else:
        missed = native.decode_range(held, job.views, job.flips, out, *rest)
    if not missed:
        return []
    others = [position for position, is_other_kind, _ in missed if is_other_kind]
    failed = [Failure(position, reason) for position, is_other_kind, reason in missed if not is_other_kind]
    return sorted(failed + _make_others(native, others, held, job))


def _readable(held: Sequence[Any]) -> Iterator[Any]:
    """The images whose bytes are there; places outside of their buffer are for the decoder to tell."""
    for position in range(len(held)):
        with suppress(ValueError):
            yield held[position]


def _held_header(data: Any) -> Header | None:
    """The header of a JPEG whose decoder holds all of it, if it is large; damage is for the decoder to tell."""
    view = memoryview(data).cast("B")
    if len(view) < LARGE_FILE_BYTES or sniff(view) != "jpeg":
        return None
    try:
        header = read_header(view)
    except UnreadableImage:
        return None
    return header if header.is_progressive else None


def _decode_each(native: ModuleType, held: Sequence[Any], job: Job, rest: tuple[Any, ...]) -> list[Missed]:
    """A range with progressive JPEGs, one after another: each of these waits until there is memory for it."""
    missed: list[Missed] = []
    for position in range(len(held)):
        own = slice(position, position + 1)
        with ROOM.sample():
            try:
                data = held[position]
                if header := _held_header(data):
                    ROOM.enter(header, at_least=(1, 1))  # of the pixels, the kernel holds a few rows
            except (UnreadableImage, ValueError) as error:
                missed.append((position, False, str(error)))
                continue
            found = native.decode_range((data,), job.views[own], job.flips[own], job.out[own], *rest)
        missed += [(position, is_other_kind, reason) for _, is_other_kind, reason in found]
    return missed


def _make_others(native: ModuleType, positions: Sequence[int], held: Sequence[Any], job: Job) -> list[Failure]:
    """Images that the extension leaves alone: decoded by libraries, then shown by the extension as raw pixels are."""
    failures = []
    for position in positions:
        try:
            with ROOM.sample():
                missed = _shown(native, fallback.whole_pixels(held[position]), position, job)
        except UnreadableImage as error:
            failures.append(Failure(position, str(error)))
            continue
        failures += [Failure(position, reason) for _, _, reason in missed]
    return failures


def _shown(native: ModuleType, pixels: NDArray[np.uint8], position: int, job: Job) -> list[tuple[int, bool, str]]:
    """Write the view of one image; its pixels are gone when this returns."""
    height, width = pixels.shape[:2]
    place, own = np.array([[0, 0, width, height]], np.int64), slice(position, position + 1)
    seen = job.views[own], job.flips[own], job.out[own], job.table
    missed: list[tuple[int, bool, str]] = native.pixels_range(
        (pixels,), place, *seen, job.target.width, job.target.height, job.fill
    )
    return missed


def pixels_range(
    buffers: Sequence[Any],
    places: NDArray[Any],
    crops: NDArray[Any],
    flips: NDArray[Any],
    out: NDArray[Any],
    target: Target,
    *,
    fill: int = 0,
) -> list[Failure]:
    """Make sample i of `out` from the H×W×3 uint8 pixels at `places[i]`; returns the samples that failed.

    `places` is n×4: number of the buffer, byte offset in it, width, height. Buffers that no place names may be
    None. The rest is as for `decode_range`.
    """
    held, found = targets.check_buffers(buffers), targets.checked_places(places)
    job = _checked_job(len(found), crops, flips, out, target, fill)
    native = native_extension()
    if native is None:
        return fallback.pick_positions(held, found, job)
    missed = native.pixels_range(held, found, job.views, job.flips, out, job.table, target.width, target.height, fill)
    return [Failure(position, reason) for position, _, reason in missed]


def _checked_job(
    count: int, crops: NDArray[Any], flips: NDArray[Any], out: NDArray[Any], target: Target, fill: int
) -> Job:
    targets.check_fill(fill)
    targets.check_out(out, target, count)
    views, turns = targets.checked_views(crops, count, target), targets.checked_flips(flips, count)
    return Job(views, turns, out, target, fill)


def which() -> str:
    """What decodes JPEGs here, with its version: part of a plan's fingerprint, because pixels depend on it."""
    native = native_extension()
    return fallback.libraries() if native is None else f"{native.LIBRARY} kernel"


@functools.cache
def native_extension() -> ModuleType | None:
    """The C extension, unless it was not built or PENSTOCK_KERNEL=fallback is set; looked up once."""
    wish = os.environ.get(SWITCH, "auto")
    if wish not in ("auto", "fallback"):
        raise OptionError(f"{SWITCH}={wish!r} is not one of auto, fallback.")
    if wish == "fallback":
        return None
    try:
        from penstock.codecs.kernel import _native as module
    except ImportError:  # not built, or its libjpeg-turbo is gone
        return None
    return module
