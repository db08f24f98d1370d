"""The resizing of c/axis.c and c/resample.c in numpy, for the fallback and for what the kernel leaves alone."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.opencv import opencv

MOST_BILINEAR = 2.0  # above this factor two taps would leave pixels out


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


class Taps(NamedTuple):
    """For each output position its input positions and their weights, both positions × taps."""

    positions: NDArray[np.intp]
    weights: NDArray[np.float32]


def resampled(pixels: NDArray[np.uint8], x: Span, y: Span, width: int, height: int) -> NDArray[np.uint8]:
    """The part of H×W×3 pixels under two spans as height×width×3; nothing outside has a part in it."""
    part = pixels[y.first : y.end, x.first : x.end]
    x, y = x._replace(start=x.start - x.first), y._replace(start=y.start - y.first)
    bilinear = x.length <= MOST_BILINEAR * width and y.length <= MOST_BILINEAR * height
    if bilinear and part.shape[:2] == (y.length, x.length):
        out: NDArray[np.uint8] = opencv().resize(part, (width, height), interpolation=opencv().INTER_LINEAR)
        return out
    rows = _along(part.astype(np.float32), taps_of(y, height, part.shape[0]), axis=0)
    levels = _along(rows, taps_of(x, width, part.shape[1]), axis=1)
    rounded: NDArray[np.uint8] = np.clip(levels + np.float32(0.5), 0, 255).astype(np.uint8)
    return rounded


def taps_of(span: Span, count: int, available: int) -> Taps:
    """The taps of `count` output positions over a span of `available` input positions."""
    scale = span.length / count
    return (_bilinear if scale <= MOST_BILINEAR else _reducing)(span.start, scale, count, available)


def _bilinear(start: float, scale: float, count: int, available: int) -> Taps:
    centres = start + (np.arange(count) + 0.5) * scale - 0.5
    below = np.floor(centres)
    share = centres - below
    positions = np.clip(np.stack([below, below + 1], axis=1), 0, available - 1).astype(np.intp)
    return Taps(positions, np.stack([1 - share, share], axis=1).astype(np.float32))


def _reducing(start: float, scale: float, count: int, available: int) -> Taps:
    centres = start + (np.arange(count) + 0.5) * scale
    first = np.clip(np.floor(centres - scale + 0.5), 0, available - 1)
    end = np.clip(np.floor(centres + scale + 0.5), first + 1, available)
    positions = first[:, None] + np.arange(int((end - first).max()))
    weights = np.maximum(1 - np.abs(positions + 0.5 - centres[:, None]) / scale, 0) * (positions < end[:, None])
    weights /= weights.sum(axis=1, keepdims=True)
    return Taps(np.minimum(positions, available - 1).astype(np.intp), weights.astype(np.float32))


def _along(values: NDArray[np.float32], taps: Taps, axis: int) -> NDArray[np.float32]:
    """One tap of all output positions at a time: no matrix of all inputs by all outputs."""
    shape: tuple[Any, ...] = (-1, 1, 1) if axis == 0 else (1, -1, 1)
    total = np.zeros((), np.float32)
    for positions, weights in zip(taps.positions.T, taps.weights.T, strict=True):
        total = total + values.take(positions, axis=axis) * weights.reshape(shape)
    return total
