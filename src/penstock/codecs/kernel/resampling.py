"""The resizing of c/axis.c and c/resample.c in numpy, for the fallback and for what the kernel leaves alone."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.opencv import opencv

MOST_BILINEAR = 2.0  # above this factor two taps would leave pixels out
# OpenCV resizes all of a crop, of which perhaps little is shown: up to 48 MB that is faster than the rows of numpy.
MOST_WHOLE_PIXELS = 2**24
VALUES_AT_ONCE = 2**22  # in numpy, 16 MB for each temporary array

Pixels = NDArray[np.uint8]


class Span(NamedTuple):
    """Where a crop lies along one axis of the decoded pixels; after reduced decoding not at whole ones."""

    start: float
    length: float

    @property
    def first(self) -> int:
        return math.floor(self.start)

    @property
    def end(self) -> int:
        return math.ceil(self.start + self.length)


class Axis(NamedTuple):
    """One axis: a span becomes `resized` positions, of which `made` from `shown` on stand after `lead` of fill.

    Which filter is used follows from the first two, so that a position does not depend on what else is shown.
    """

    span: Span
    resized: int
    shown: int
    made: int
    lead: int

    @classmethod
    def of(cls, span: Span, resized: int, part: int, size: int) -> Axis:
        """The axis of a part that begins at `part` and has `size` positions."""
        shown = min(max(part, 0), resized)
        made = max(min(part + size, resized) - shown, 0)
        return cls(span, resized, shown, made, max(-part, 0))

    @property
    def is_plain(self) -> bool:
        """Whether nothing is resampled."""
        return self.span.length == self.resized and self.span.start == self.span.first

    @property
    def is_bilinear(self) -> bool:
        return self.span.length <= MOST_BILINEAR * self.resized

    @property
    def is_whole(self) -> bool:
        """Whether the span begins and ends with whole pixels."""
        return self.span.start == self.span.first and self.span.length == self.span.end - self.span.first


class Taps(NamedTuple):
    """For each output position its input positions and their weights, both positions × taps."""

    positions: NDArray[np.intp]
    weights: NDArray[np.float32]


def resampled(pixels: Pixels, across: Axis, down: Axis) -> Pixels:
    """What two axes make of H×W×3 pixels, without the fill; nothing outside of their spans has a part in it."""
    crop = pixels[down.span.first : down.span.end, across.span.first : across.span.end]
    rows, columns = slice(down.shown, down.shown + down.made), slice(across.shown, across.shown + across.made)
    if across.is_plain and down.is_plain:
        return crop[rows, columns]
    both = (across, down)
    small = across.resized * down.resized <= MOST_WHOLE_PIXELS
    if small and all(axis.is_bilinear and axis.is_whole for axis in both):
        cv2 = opencv()
        whole: Pixels = cv2.resize(crop, (across.resized, down.resized), interpolation=cv2.INTER_LINEAR)
        return whole[rows, columns]
    return _mixed(crop, taps_of(across, crop.shape[1]), taps_of(down, crop.shape[0]))


def taps_of(axis: Axis, available: int) -> Taps:
    """The taps of the positions that an axis makes over the `available` input positions of its span."""
    scale = axis.span.length / axis.resized
    positions = np.arange(axis.shown, axis.shown + axis.made)
    return (_bilinear if scale <= MOST_BILINEAR else _reducing)(
        axis.span.start - axis.span.first, scale, positions, available
    )


def _bilinear(start: float, scale: float, positions: NDArray[np.int64], available: int) -> Taps:
    centres = start + (positions + 0.5) * scale - 0.5
    below = np.floor(centres)
    share = centres - below
    taps = np.clip(np.stack([below, below + 1], axis=1), 0, available - 1).astype(np.intp)
    return Taps(taps, np.stack([1 - share, share], axis=1).astype(np.float32))


def _reducing(start: float, scale: float, positions: NDArray[np.int64], available: int) -> Taps:
    centres = start + (positions + 0.5) * scale
    first = np.clip(np.floor(centres - scale + 0.5), 0, available - 1)
    end = np.clip(np.floor(centres + scale + 0.5), first + 1, available)
    taps = first[:, None] + np.arange(int((end - first).max()))
    weights = np.maximum(1 - np.abs(taps + 0.5 - centres[:, None]) / scale, 0) * (taps < end[:, None])
    weights /= weights.sum(axis=1, keepdims=True)
    return Taps(np.minimum(taps, available - 1).astype(np.intp), weights.astype(np.float32))


def _mixed(crop: Pixels, across: Taps, down: Taps) -> Pixels:
    """Rows first, then columns, so many rows at a time that temporary arrays stay small."""
    out = np.empty((len(down.positions), len(across.positions), 3), np.uint8)
    step = max(1, VALUES_AT_ONCE // (3 * max(crop.shape[1], len(across.positions))))
    for start in range(0, len(out), step):
        some = slice(start, start + step)
        rows = _along(crop, Taps(down.positions[some], down.weights[some]), axis=0)
        out[some] = np.clip(_along(rows, across, axis=1) + np.float32(0.5), 0, 255)
    return out


def _along(values: NDArray[Any], taps: Taps, axis: int) -> NDArray[np.float32]:
    """One tap of all output positions at a time: no matrix of all inputs by all outputs."""
    shape: tuple[Any, ...] = (-1, 1, 1) if axis == 0 else (1, -1, 1)
    total = np.zeros((), np.float32)
    for positions, weights in zip(taps.positions.T, taps.weights.T, strict=True):
        total = total + values.take(positions, axis=axis) * weights.reshape(shape)
    return total
