"""Sums over the pixels of many JPEGs in one call without the GIL, where the kernel is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from penstock.codecs import kernel

Channels = tuple[int, int, int]


class HalvedSums(NamedTuple):
    """Of the pixels of an image at half its size: how many, their sum and the sum of their squares."""

    pixels: int
    sums: Channels
    squares: Channels


def measure_halved(images: Sequence[Any], least_side: int) -> list[HalvedSums | None]:
    """The sums of encoded images; None for all but whole JPEGs, grey or RGB, with both sides from `least_side` on."""
    native = kernel.native_extension()
    if native is None:
        return [None] * len(images)
    found = np.empty((len(images), 7), np.uint64)
    native.measure_halved(tuple(images), least_side, found)
    return [_sums(values) if values[0] else None for values in found.tolist()]


def _sums(values: list[int]) -> HalvedSums:
    pixels, *others = values
    return HalvedSums(pixels, (others[0], others[1], others[2]), (others[3], others[4], others[5]))
