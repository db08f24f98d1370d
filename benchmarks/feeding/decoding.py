"""What peers do with a JPEG that bring no decoder: the fastest wheels, and torchvision's crop distribution.

Runs in the peers' environments: numpy, simplejpeg and OpenCV are there, Penstock is not.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import simplejpeg

cv2.setNumThreads(0)  # the loader's threads or processes are enough for the cores

SIDE = 224
AREAS, LOG_RATIOS = (0.08, 1.0), (math.log(3 / 4), math.log(4 / 3))
MEAN = np.array([123.675, 116.28, 103.53], np.float32)
STD = np.array([58.395, 57.12, 57.375], np.float32)


def listed(folder: str) -> list[tuple[str, int]]:
    """Every JPEG of the class folders, and the number of its class."""
    paths = sorted(Path(folder).glob("class_*/*.jpg"))
    return [(str(path), int(path.parent.name.removeprefix("class_"))) for path in paths]


def random_resized_crop(width: int, height: int) -> tuple[int, int, int, int]:
    """The crop of torchvision's RandomResizedCrop, at the price of a few calls of `random`."""
    for _ in range(10):
        area = width * height * random.uniform(*AREAS)
        ratio = math.exp(random.uniform(*LOG_RATIOS))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    return _central_crop(width, height)


def _central_crop(width: int, height: int) -> tuple[int, int, int, int]:
    w, h = min(width, round(height * 4 / 3)), min(height, round(width * 4 / 3))
    return (width - w) // 2, (height - h) // 2, w, h


def with_simplejpeg(data: bytes) -> Any:
    return simplejpeg.decode_jpeg(data, "RGB")


def with_opencv(data: bytes) -> Any:
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB)


DECODERS: dict[str, Callable[[bytes], Any]] = {"simplejpeg": with_simplejpeg, "opencv": with_opencv}


def augmented(data: bytes, decode: Callable[[bytes], Any] = with_simplejpeg, out: Any = None) -> Any:
    """One training image: decode, random-resized-crop, flip; uint8, rows × columns × RGB."""
    pixels = decode(data)
    x, y, width, height = random_resized_crop(pixels.shape[1], pixels.shape[0])
    part = pixels[y : y + height, x : x + width]
    if random.random() < 0.5:
        return cv2.flip(cv2.resize(part, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR), 1, dst=out)
    return cv2.resize(part, (SIDE, SIDE), dst=out, interpolation=cv2.INTER_LINEAR)


def normalised(pixels: Any) -> Any:
    """One image or a batch as float32, channels first."""
    return np.ascontiguousarray(np.moveaxis((pixels - MEAN) / STD, -1, -3))


def batch_of(files: Sequence[tuple[str, int]], layout: str) -> tuple[Any, Any]:
    """A whole batch from files; OpenCV writes each image straight into the batch."""
    images = np.empty((len(files), SIDE, SIDE, 3), np.uint8)
    for row, (path, _) in zip(images, files, strict=True):
        with open(path, "rb") as file:  # noqa: PTH123 - a Path costs as much as the reading
            augmented(file.read(), out=row)
    labels = np.array([label for _, label in files])
    return (normalised(images) if layout == "float32" else images), labels
