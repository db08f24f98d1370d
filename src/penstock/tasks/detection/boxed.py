"""A source as detection sees it: its image as `image`, its boxes as `boxes`, their classes by the task's numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.geometry import as_boxes
from penstock.samples import RESERVED, Field, Sample, Schema, Store, Subset
from penstock.tasks.one_image import IMAGE, OneImage

BOXES, BOX_LABEL = "boxes", "box_label"


def boxed(source: Store, image: str, boxes: str | None, classes: Sequence[str]) -> Store:
    """The source with these fields alone, under our names. Subsets stay subsets."""
    if isinstance(source, Subset):
        return Subset(boxed(source.source, image, boxes, classes), source.indices)
    return Boxed(source, image, boxes, tuple(classes))


class Boxed(OneImage):
    """The image and the boxes of another source; boxes of classes that are not asked for are left out."""

    def __init__(self, source: Store, image: str, boxes: str | None, classes: tuple[str, ...]) -> None:
        fields = (Field(IMAGE, "image"),)
        labels = (Field(BOXES, "boxes"), Field(BOX_LABEL, "labels", "int64"))
        super().__init__(source, image, Schema(fields if boxes is None else (*fields, *labels), classes))
        self._boxes = boxes

    def _renamed(self, sample: Sample) -> Sample:
        kept: Sample = {name: sample[name] for name in RESERVED if name in sample}
        if self._boxes is None:
            return kept
        boxes = as_boxes(sample[self._boxes])
        labels = self._labels(sample, len(boxes))
        known = labels >= 0
        return {**kept, BOXES: boxes[known], BOX_LABEL: labels[known]}

    def _labels(self, sample: Sample, count: int) -> NDArray[np.int64]:
        """The number of each box's class; where boxes have no classes, all are of the first."""
        labels = sample.get(BOX_LABEL)
        if labels is None or not len(self._numbers):
            return np.zeros(count, np.int64)
        own = np.asarray(labels).astype(np.int64)
        return np.where(own >= 0, self._numbers[np.maximum(own, 0)], -1)

    def fingerprint(self) -> str | None:
        inner = self.source.fingerprint()
        return None if inner is None else f"{inner} {self._image} {self._boxes} {self.schema.classes}"
