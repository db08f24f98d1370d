"""Encoded images to finished samples, a range at a time: decode what is needed, resize, flip, write into the batch.

Two ways lead there, with the same rules. The C extension (`c/`, over libjpeg-turbo) decodes only the rows and
columns of the crop and does not hold the GIL; `fallback` does the same work with simplejpeg and OpenCV where the
extension is absent, and for what it leaves alone (PNG, WebP, CMYK …). They agree within one level of 255.

| what     | rule                                                                                               |
|----------|----------------------------------------------------------------------------------------------------|
| crop     | whole pixels of the upright image; nothing outside the crop has a part in the result               |
| resizing | each axis by itself: bilinear with half-pixel centres up to a factor of two; above it the mean of  |
|          | what a pixel covers, weighted by a triangle, as in Pillow; levels are rounded once, at the end     |
| reduced  | `when-twice`: a JPEG whose crop is at least 2, 4 or 8 times too large in both directions is decoded |
|          | at 1/2, 1/4 or 1/8, which is faster and the better filter, but not the same pixels; `never`: exact |
| damage   | whatever the decoder complains about is a failure; damage below a crop is not seen                 |
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from types import ModuleType
from typing import Any, get_args

from numpy.typing import NDArray

from penstock.codecs.kernel import fallback, targets
from penstock.codecs.kernel.targets import Failure, Layout, Reduced, Target, level_table
from penstock.errors import RecipeError, one_of

__all__ = ["Failure", "Layout", "Reduced", "Target", "decode_range", "which"]

SWITCH = "PENSTOCK_KERNEL"


def decode_range(
    sources: Sequence[Any],
    crops: NDArray[Any],
    flips: NDArray[Any],
    out: NDArray[Any],
    target: Target,
    *,
    reduced: Reduced = "when-twice",
) -> list[Failure]:
    """Make sample i of `out` from `sources[i]` (bytes or a buffer); returns the samples that failed.

    `crops` is n×4 (x, y, width, height), `flips` is n of uint8: bit 0 horizontal, bit 1 vertical.
    """
    one_of("reduced", reduced, get_args(Reduced))
    held = targets.check_sources(sources)
    areas = targets.checked_crops(crops, len(held))
    turns = targets.checked_flips(flips, len(held))
    targets.check_out(out, target, len(held))
    native = _extension()
    if native is None:
        return fallback.decode_positions(range(len(held)), held, areas, turns, out, target, reduced=reduced)
    table = None if target.layout == "hwc-uint8" else level_table(target)
    missed = native.decode_range(held, areas, turns, out, table, target.width, target.height, reduced != "never")
    if not missed:
        return []
    others = [position for position, is_other_kind, _ in missed if is_other_kind]
    failed = [Failure(position, reason) for position, is_other_kind, reason in missed if not is_other_kind]
    return sorted(failed + fallback.decode_positions(others, held, areas, turns, out, target, reduced=reduced))


def which() -> str:
    """What decodes JPEGs here, with its version: part of a plan's fingerprint, because pixels depend on it."""
    native = _extension()
    return fallback.libraries() if native is None else f"{native.LIBRARY} kernel"


@functools.cache
def _extension() -> ModuleType | None:
    """The C extension, unless it was not built or PENSTOCK_KERNEL=fallback is set; looked up once."""
    wish = os.environ.get(SWITCH, "auto")
    if wish not in ("auto", "fallback"):
        raise RecipeError(f"{SWITCH}={wish!r} is not one of auto, fallback.")
    if wish == "fallback":
        return None
    try:
        from penstock.codecs.kernel import _native as module
    except ImportError:  # not built, or its libjpeg-turbo is gone
        return None
    return module
