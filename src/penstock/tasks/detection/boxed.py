"""A source as detection sees it: its image as `image`, its boxes as `boxes`, their classes by the task's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.geometry import as_boxes
from penstock.samples import RESERVED, Field, Raw, Sample, Schema, Source, Subset, annotations_of, column_of
from penstock.tasks.labelled import KEPT_MEMBERS, OF_THE_FIRST_IMAGE, numbers_of

IMAGE, BOXES, BOX_LABEL = "image", "boxes", "box_label"


def boxed(source: Source, image: str, boxes: str | None, classes: Sequence[str]) -> Source:
    """The source with these fields alone, under our names. Subsets stay subsets."""
    if isinstance(source, Subset):
        return Subset(boxed(source.source, image, boxes, classes), source.indices)
    return Boxed(source, image, boxes, tuple(classes))


class Boxed:
    """A view of another source; boxes of classes that are not asked for are left out, nothing else is copied."""

    def __init__(self, source: Source, image: str, boxes: str | None, classes: tuple[str, ...]) -> None:
        self.source, self._image, self._boxes = source, image, boxes
        fields = (Field(IMAGE, "image"),)
        labels = (Field(BOXES, "boxes"), Field(BOX_LABEL, "labels", "int64"))
        self.schema = Schema(fields if boxes is None else (*fields, *labels), classes)
        self._numbers = numbers_of(source.schema.classes, classes)

    def __getattr__(self, name: str) -> Any:
        """What the other source offers beyond the protocol; only that is offered here."""
        if "source" not in self.__dict__ or name not in (*KEPT_MEMBERS, "fingerprint"):
            raise AttributeError(name)
        if name in OF_THE_FIRST_IMAGE and not self._shows_the_first_image:
            raise AttributeError(name)
        offered = getattr(self.source, name)
        return self._fingerprint if name == "fingerprint" else offered

    @property
    def _shows_the_first_image(self) -> bool:
        first = self.source.schema.image
        return first is not None and first.name == self._image

    @property
    def classes(self) -> tuple[str, ...]:
        return self.schema.classes

    def __len__(self) -> int:
        return len(self.source)

    def read(self, index: int) -> Raw:
        return self.source.read(index)

    def decode(self, raw: Raw) -> Sample:
        sample = self.source.decode(raw)
        return {IMAGE: sample[self._image], **self._renamed(sample)}

    def annotations(self, index: int) -> Sample:
        """Every field but the pixels."""
        return self._renamed(annotations_of(self.source, index))

    def column(self, name: str) -> NDArray[Any]:
        return column_of(self.source, name)

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

    def _fingerprint(self) -> str:
        inner: str = self.source.fingerprint()  # type: ignore[attr-defined]
        return f"{inner} {self._image} {self._boxes} {self.schema.classes}"

    def __repr__(self) -> str:
        return f"Boxed({self.source!r})"
