"""What the contestants of the kernel's benchmark do: images, and for each sample a view and a flip."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from benchmarks.bare_loop import Orders
from benchmarks.pictures import write_jpegs
from penstock.codecs import kernel
from penstock.codecs.headers import read_header
from penstock.codecs.images import decode_image

PADDING = 4


@dataclass(frozen=True)
class Jobs:
    """Sample i shows the view `crops[i]` of image number `images[i]`."""

    sources: Sequence[Any]  # of every image: JPEGs, or raw pixels
    sizes: NDArray[np.int64]  # of every image: width, height
    images: NDArray[np.int64]
    crops: NDArray[np.int64]  # n×8
    flips: NDArray[np.uint8]
    target: kernel.Target
    batch: int
    is_raw: bool

    def __len__(self) -> int:
        return len(self.flips)

    def batches(self) -> list[slice]:
        return [slice(start, start + self.batch) for start in range(0, len(self), self.batch)]

    @functools.cached_property
    def buffer(self) -> bytes:
        """The pixels of all images in one piece, as a shard has them."""
        return b"".join(self.sources)

    @functools.cached_property
    def places(self) -> NDArray[np.int64]:
        """Where in the buffer each sample's image is."""
        lengths = self.sizes.prod(axis=1) * 3
        rows = np.column_stack([np.zeros_like(lengths), np.cumsum(lengths) - lengths, self.sizes])
        return rows[self.images]

    def orders(self) -> Orders:
        """The same samples for the program without Python."""
        images = (self.sources, self.sizes, self.images)
        return Orders(*images, self.crops, self.flips, self.target.width, self.batch)


def random_resized_crop(width: int, height: int, rng: np.random.Generator) -> tuple[int, int, int, int]:
    """8 to 100 % of the area at a ratio of 3:4 to 4:3, as everybody trains with."""
    for _ in range(10):
        area = width * height * rng.uniform(0.08, 1.0)
        ratio = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3)))
        w, h = round(np.sqrt(area * ratio)), round(np.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return int(rng.integers(width - w + 1)), int(rng.integers(height - h + 1)), w, h
    return 0, 0, width, height


def jpeg_jobs(home: Path, count: int, side: int, batch: int) -> Jobs:
    """Photographs of about 500×375 px at 100 KB, random-resized-crop, flip."""
    write_jpegs(home, count, quality=95)
    sources = [path.read_bytes() for path in sorted(home.rglob("*.jpg"))]
    sizes = np.array([read_header(data)[1:3] for data in sources])
    return _resized_jobs(sources, sizes, side, batch, is_raw=False)


def raw_jobs(images: list[NDArray[np.uint8]], side: int, batch: int) -> Jobs:
    """Raw pixels, random-resized-crop, flip."""
    sizes = np.array([image.shape[1::-1] for image in images])
    return _resized_jobs([image.tobytes() for image in images], sizes, side, batch, is_raw=True)


def _resized_jobs(sources: list[bytes], sizes: NDArray[np.int64], side: int, batch: int, *, is_raw: bool) -> Jobs:
    rng, count = np.random.default_rng(7), len(sources)
    crops = np.array([random_resized_crop(int(width), int(height), rng) for width, height in sizes])
    views = np.column_stack([crops, np.tile([side, side, 0, 0], (count, 1))])
    flips = rng.integers(0, 2, count).astype(np.uint8)
    return Jobs(sources, sizes, np.arange(count), views, flips, kernel.Target(side, side), batch, is_raw)


def packed_images(jobs: Jobs, shortest_px: int) -> list[NDArray[np.uint8]]:
    """The images of some jobs as a pack with this shortest side stores them."""
    images = []
    for data in jobs.sources:
        pixels = decode_image(data)
        scale = shortest_px / min(pixels.shape[:2])
        size = (round(pixels.shape[1] * scale), round(pixels.shape[0] * scale))
        images.append(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA))
    return images


def small_jobs(count: int, batch: int) -> Jobs:
    """Raw images of 32×32 px in random order, padded by 4 px and cropped again, flip."""
    rng = np.random.default_rng(9)
    pixels = rng.integers(0, 256, (count, 32, 32, 3), np.uint8)
    views = np.column_stack(
        [np.tile([0, 0, 32, 32, 32, 32], (count, 1)), rng.integers(-PADDING, PADDING + 1, (count, 2))]
    )
    flips = rng.integers(0, 2, count).astype(np.uint8)
    sizes, order = np.full((count, 2), 32), rng.permutation(count)
    return Jobs([image.tobytes() for image in pixels], sizes, order, views, flips, kernel.Target(32, 32), batch, True)
