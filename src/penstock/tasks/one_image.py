"""A view of a source that shows one image of it as `image`: what the views of all tasks share."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from penstock.samples import Numbers, Raw, Sample, Schema, Store, View
from penstock.samples.store import ImageStorage

IMAGE = "image"


class OneImage(View):
    """A view of another store; nothing is copied. Those who inherit say what stands beside the image."""

    def __init__(self, source: Store, image: str, schema: Schema) -> None:
        self.source, self._schema, self._image = source, schema, image
        self._numbers = numbers_of(source.schema.classes, schema.classes)
        first = source.schema.image
        self._shows_the_first = first is not None and first.name == image

    @abstractmethod
    def _renamed(self, sample: Sample) -> Sample:
        """The fields beside the image, under our names."""

    @property
    def schema(self) -> Schema:
        return self._schema

    def decode(self, raw: Raw) -> Sample:
        sample = self.source.decode(raw)
        return {IMAGE: sample[self._image], **self._renamed(sample)}

    def annotations(self, index: int) -> Sample:
        """Every field but the pixels."""
        return self._renamed(self.source.annotations(index))

    # What the other store says of its images it says of the first.

    @property
    def image_storage(self) -> ImageStorage | None:
        return self.source.image_storage if self._shows_the_first else None

    def image_sizes(self, indices: Numbers) -> Numbers | None:
        return self.source.image_sizes(indices) if self._shows_the_first else None

    def uniform_image_size(self) -> tuple[int, int] | None:
        return self.source.uniform_image_size() if self._shows_the_first else None


def numbers_of(own: tuple[str, ...], wanted: tuple[str, ...]) -> NDArray[np.int64]:
    """The number that each class has among the wanted ones; −1 for those that are not wanted."""
    places = {name: number for number, name in enumerate(wanted)}
    return np.array([places.get(name, -1) for name in own], np.int64)
