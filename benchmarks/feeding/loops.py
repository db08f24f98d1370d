"""Bare C loops as contestants: the same images and crops, no pipeline around them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import penstock as ps
from benchmarks.bare_loop import BareLoop, Orders
from benchmarks.feeding.contestants import Pass
from benchmarks.kernel_jobs import random_resized_crop
from penstock.codecs import kernel

SIDE, BATCH, PADDING = 224, 64, 4


class Loop:
    """One kind of round of the program without Python."""

    pid = 0

    def __init__(self, loop: BareLoop, letter: str, samples: int) -> None:
        self._loop, self._letter, self._samples = loop, letter, samples
        self.versions = {"kernel": kernel.which()}

    def go(self) -> Pass:
        return Pass(self._loop.seconds(self._letter), self._samples)

    def close(self) -> None:
        self._loop.close()


def crops_loop(home: Path, pack: ps.Pack, letter: str) -> Loop:
    """Random-resized-crop and flip of every image of a pack, in random order."""
    rng, count = np.random.default_rng(7), len(pack)
    sizes = np.column_stack([pack.column("width"), pack.column("height")]).astype(np.int64)
    images = rng.permutation(count)
    crops = np.array([random_resized_crop(int(width), int(height), rng) for width, height in sizes[images]])
    sources = [pack.read(index).data for index in range(count)]
    orders = Orders(sources, sizes, images, crops, _flips(rng, count), SIDE, BATCH)
    return Loop(BareLoop(home, orders, f"{pack.path.stem}-{letter}"), letter, count)


def whole_loop(home: Path, pack: ps.Pack, name: str) -> Loop:
    """Every image of a pack as a whole, resized, in random order; `name` tells its file from those of other loops."""
    rng, count = np.random.default_rng(7), len(pack)
    sizes = np.column_stack([pack.column("width"), pack.column("height")]).astype(np.int64)
    images = rng.permutation(count)
    crops = np.hstack([np.zeros((count, 2), np.int64), sizes[images]])
    sources = [pack.read(index).data for index in range(count)]
    orders = Orders(sources, sizes, images, crops, np.zeros(count), SIDE, BATCH)
    return Loop(BareLoop(home, orders, f"{pack.path.stem}-{name}"), "u", count)


def thumbnails_loop(home: Path, pack: ps.Pack, side: int, batch: int) -> Loop:
    """Crop with padding and flip of raw pixels: a gather and nothing else."""
    rng, count = np.random.default_rng(7), len(pack)
    corners = rng.integers(-PADDING, PADDING + 1, (count, 2))
    whole = np.full((count, 4), [0, 0, side, side])
    views = np.hstack([whole, np.full((count, 2), side), corners])
    sources = [pack.read(index).data for index in range(count)]
    sizes = np.full((count, 2), side)
    orders = Orders(sources, sizes, rng.permutation(count), views, _flips(rng, count), side, batch)
    return Loop(BareLoop(home, orders, pack.path.stem), "c", count)


def frames_loop(home: Path, pack: ps.Pack, frames: NDArray[np.int64], letter: str) -> Loop:
    """Whole frames in the order of clips × frames; a clip is one sample."""
    side, count = int(pack.column("width")[0]), frames.size
    used, images = np.unique(frames, return_inverse=True)
    sources = [pack.read(int(index)).data for index in used]
    crops, flips = np.full((count, 4), [0, 0, side, side]), np.zeros(count)
    sizes = np.full((len(sources), 2), side)
    orders = Orders(sources, sizes, images.ravel(), crops, flips, side, 8 * frames.shape[1])
    return Loop(BareLoop(home, orders, f"{pack.path.stem}-{letter}"), letter, len(frames))


def _flips(rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    return rng.integers(0, 2, count)
