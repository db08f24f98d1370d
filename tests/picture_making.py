"""Small pictures for tests of sources."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from penstock.codecs.images import encode_image


def write_picture(path: Path, width: int = 40, height: int = 30, seed: int = 0) -> Path:
    """A seeded picture; the ending decides the codec."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8)
    codec = {".png": "png", ".webp": "webp"}.get(path.suffix, "jpeg")
    path.write_bytes(encode_image(pixels, codec))
    return path
