"""Many small things in one call without the GIL: files read, JPEG headers, sums over pixels, rows of tiles."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.codecs import kernel
from penstock.codecs.headers import Header

# Many small files in one call without the GIL: opening and reading one alone hands it over five times.


class ReadFile(NamedTuple):
    """The content of a regular file, and its state when it was opened."""

    data: memoryview
    size: int
    changed_ns: int


def read_files(paths: Sequence[str], allocate: Callable[[int], memoryview]) -> list[ReadFile | None]:
    """The content of files, one after another in memory that `allocate` gives.

    None stands for what is best read by itself: files that cannot be read, which then say why, or that change
    meanwhile, and everything where the kernel is not built.
    """
    native = kernel.native_extension()
    if native is None:
        return [None] * len(paths)
    names = tuple(os.fsencode(path) for path in paths)
    states = np.empty((len(names), 2), np.int64)
    native.look_at_files(names, states)
    ends = np.cumsum(np.maximum(states[:, 0], 0))
    memory = allocate(int(ends[-1]) if len(ends) else 0)
    is_read = np.empty(len(names), np.uint8)
    native.read_files(names, states, memory, is_read)
    found = zip(is_read.tolist(), states.tolist(), ends.tolist(), strict=True)
    return [ReadFile(memory[end - size : end], size, changed) if done else None for done, (size, changed), end in found]


# The headers of many JPEGs in one call, where the kernel is built.


def jpeg_headers(images: Sequence[Any]) -> list[Header | None]:
    """What `read_header` says of JPEGs without EXIF, but not whether they are progressive; None for all other images,
    and for those that are damaged.
    """
    native = kernel.native_extension()
    if native is None:
        return [None] * len(images)
    found = np.empty((len(images), 4), np.int64)
    native.jpeg_headers(tuple(images), found)
    return [
        Header("jpeg", width, height, 1, channels, bits) if width else None
        for width, height, channels, bits in found.tolist()
    ]


# Sums over the pixels of many JPEGs in one call without the GIL, where the kernel is built.


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


# Rows of uncompressed tiles in one call without the GIL, which would be handed over for each of them.


def read_tiles(
    descriptor: int, offsets: NDArray[np.int64], row_bytes: int, left_bytes: int, out: NDArray[np.uint8]
) -> bool:
    """Fill rows of an H×W×C image with those of tiles beside one another, or say that it is left to the caller.

    `offsets` is where the rows of each tile begin in the file, each of `row_bytes`; of the first tile so many bytes lie
    left of the image. EOFError where the file ends within them.
    """
    native: Any = kernel.native_extension()
    return native is not None and native.read_tiles(descriptor, offsets, row_bytes, left_bytes, out)
