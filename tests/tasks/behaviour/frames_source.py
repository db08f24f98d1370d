"""Frames of small videos in memory, with a row of labels for each."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from penstock.samples import Field, Raw, Sample, Schema


class Frames:
    """Videos as one array; `groups` says which frame is of which."""

    statistics: ClassVar[dict[str, Any]] = {"mean": [120.0, 120.0, 120.0], "std": [50.0, 50.0, 50.0], "images": 1}

    def __init__(
        self, images: NDArray[np.uint8], labels: Any, groups: Any = None, behaviours: Any = ("background", "walk")
    ) -> None:
        self.images, self.labels = images, np.asarray(labels, np.int8)
        self.groups = np.array(["a"] * len(images) if groups is None else groups)
        fields = (Field("image", "image"), Field("labels", "labels", "int8", (len(behaviours),)))
        self.schema = Schema(fields, tuple(behaviours))

    def __len__(self) -> int:
        return len(self.images)

    def read(self, index: int) -> Raw:
        return Raw(index, None)

    def decode(self, raw: Raw) -> Sample:
        return {"image": self.images[raw.index], **self.annotations(raw.index)}

    def annotations(self, index: int) -> Sample:
        return {"labels": self.labels[index], "group": str(self.groups[index]), "key": f"{self.groups[index]}#{index}"}

    def column(self, name: str) -> NDArray[Any]:
        height, width = self.images.shape[1:3]
        sizes = {"height": height, "width": width}
        if name in sizes:
            return np.full(len(self), sizes[name])
        return {"group": self.groups, "labels": self.labels}[name]


def random_frames(count: int, width: int = 64, height: int = 32, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (count, height, width, 3), np.uint8)
