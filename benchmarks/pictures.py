"""Seeded pictures that compress like photographs: large soft shapes, finer texture on top, a little noise."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray

OCTAVES = ((4, 60.0), (12, 40.0), (48, 22.0), (160, 14.0))
NOISE = 6.0


def picture(seed: int, width: int, height: int) -> NDArray[np.uint8]:
    """An RGB picture that depends on nothing but its arguments."""
    rng = np.random.default_rng(seed)
    total = np.full((height, width, 3), rng.uniform(90, 160, 3), np.float32)
    for cells, strength in OCTAVES:
        coarse = rng.standard_normal((cells, cells, 3)).astype(np.float32)
        total += strength * cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    total += NOISE * rng.standard_normal((height, width, 1)).astype(np.float32)
    return np.clip(total, 0, 255).astype(np.uint8)


def write_jpegs(folder: Path, count: int, *, width: int = 500, height: int = 375, quality: int = 92) -> int:
    """Write `count` JPEGs into class folders, unless they are there; returns their bytes."""
    marker = folder / f".complete-{count}-{width}x{height}-{quality}"
    if not marker.exists():
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda number: _write_one(folder, number, width, height, quality), range(count)))
        marker.touch()
    return sum(path.stat().st_size for path in folder.rglob("*.jpg"))


def _write_one(folder: Path, number: int, width: int, height: int, quality: int) -> None:
    # Sizes differ by up to a fifth, as photographs do, and some stand upright.
    rng = np.random.default_rng(10_000_000 + number)
    factor = rng.uniform(0.9, 1.1)
    shape = (int(width * factor), int(height * factor))
    if rng.random() < 0.3:
        shape = shape[::-1]
    target = folder / f"class_{number % 10}" / f"{number:06d}.jpg"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(simplejpeg.encode_jpeg(picture(number, *shape), quality=quality, colorsubsampling="420"))
