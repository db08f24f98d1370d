"""JPEGs of every kind for tests: subsampling, progressive, restart markers, orientation."""

from __future__ import annotations

import struct

import cv2
import numpy as np
from numpy.typing import NDArray

SUBSAMPLINGS = ("444", "422", "420", "440", "411", "grey")


def soft_picture(width: int, height: int, seed: int = 0, *, noise: float = 12.0) -> NDArray[np.uint8]:
    """RGB with shapes and texture, so that a pixel in the wrong place is seen."""
    rng = np.random.default_rng(seed)
    coarse = rng.uniform(0, 255, (7, 9, 3)).astype(np.float32)
    pixels = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    return np.clip(pixels + rng.normal(0, noise, (height, width, 3)), 0, 255).astype(np.uint8)


def jpeg(
    pixels: NDArray[np.uint8],
    *,
    subsampling: str = "420",
    progressive: bool = False,
    restart: int = 0,
    quality: int = 90,
) -> bytes:
    options = [cv2.IMWRITE_JPEG_QUALITY, quality, cv2.IMWRITE_JPEG_PROGRESSIVE, int(progressive)]
    options += [cv2.IMWRITE_JPEG_RST_INTERVAL, restart]
    if subsampling == "grey":
        pixels = np.ascontiguousarray(pixels[:, :, 1])
    else:
        factor = getattr(cv2, f"IMWRITE_JPEG_SAMPLING_FACTOR_{subsampling}")
        options += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, factor]
    done, data = cv2.imencode(".jpg", pixels[..., ::-1] if pixels.ndim == 3 else pixels, options)
    assert done
    return bytes(data)


def turned(data: bytes, orientation: int, *, order: str = "<") -> bytes:
    """The same JPEG with an EXIF block that says how to turn it."""
    mark = b"II*\0" if order == "<" else b"MM\0*"
    entries = struct.pack(order + "HHIHH", 0x0100, 3, 1, 5, 0) + struct.pack(
        order + "HHIHH", 0x0112, 3, 1, orientation, 0
    )
    block = b"Exif\0\0" + mark + struct.pack(order + "IH", 8, 2) + entries + bytes(4)
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block + data[2:]
