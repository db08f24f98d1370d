"""A pack of a million small pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import simplejpeg
from numpy.typing import NDArray

import penstock as ps

ROWS = 1_000_000
KINDS = 64  # different pictures; the rows are what matters


class Million:
    """Pictures of 32×32 px, again and again."""

    schema = ps.Schema((ps.Field("image", "image"), ps.Field("label", "class")), tuple(f"kind_{n}" for n in range(10)))
    encoded_images = True

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        pictures = rng.integers(0, 256, (KINDS, 4, 4, 3), dtype=np.uint8).repeat(8, axis=1).repeat(8, axis=2)
        self._files = [simplejpeg.encode_jpeg(np.ascontiguousarray(picture)) for picture in pictures]

    def __len__(self) -> int:
        return ROWS

    def read(self, index: int) -> ps.Raw:
        return ps.Raw(index, self._files[index % KINDS])

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        return {"image": simplejpeg.decode_jpeg(raw.data), **self.annotations(raw.index)}

    def annotations(self, index: int) -> dict[str, Any]:
        return {"label": index % 10, "key": f"{index:07d}", "split": "val" if index % 1000 == 0 else "train"}

    def column(self, name: str) -> NDArray[Any]:
        if name == "split":
            return np.where(np.arange(ROWS) % 1000 == 0, "val", "train")
        if name == "label":
            return np.arange(ROWS) % 10
        raise KeyError(name)


def million_pack(home: Path) -> Path:
    path = home / "million.pack"
    if not path.exists():
        ps.pack(Million(), path, progress=False)
    return path
