"""A view of a source that shows one image of it as `image`: what the views of all tasks share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from penstock.samples import Raw, Sample, Schema, Source, annotations_of, column_of

IMAGE = "image"
# What flows look for, to make images without a line of Python for each; true of the first image of a source.
OF_THE_FIRST_IMAGE = (
    "encoded_images",
    "stores_pixels",
    "image_sizes",
    "uniform_image_size",
    "pixel_places",
    "encoded_places",
)
KEPT_MEMBERS = (
    *OF_THE_FIRST_IMAGE,
    "origin",
    "problems",
    "damage",
    "will_need",
    "give_back",
    "resident_share",
    "shard_numbers",
    "group_numbers",
    "statistics",
    "path",
)


class OneImage(ABC):
    """A view of another source; nothing is copied. Those who inherit say what stands beside the image."""

    # Members that say something else here, and what says it.
    changed_members: ClassVar[dict[str, str]] = {"fingerprint": "_fingerprint"}

    def __init__(self, source: Source, image: str, schema: Schema) -> None:
        self.source, self.schema, self._image = source, schema, image
        self._numbers = numbers_of(source.schema.classes, schema.classes)

    @abstractmethod
    def _renamed(self, sample: Sample) -> Sample:
        """The fields beside the image, under our names."""

    @abstractmethod
    def _fingerprint(self) -> str: ...

    def __getattr__(self, name: str) -> Any:
        """What the other source offers beyond the protocol; only that is offered here."""
        if "source" not in self.__dict__ or name not in (*KEPT_MEMBERS, *self.changed_members):
            raise AttributeError(name)
        if name in OF_THE_FIRST_IMAGE and not self._shows_the_first_image:
            raise AttributeError(name)
        offered = getattr(self.source, name)
        return getattr(self, self.changed_members[name]) if name in self.changed_members else offered

    @property
    def _shows_the_first_image(self) -> bool:
        first = self.source.schema.image
        return first is not None and first.name == self._image

    @property
    def classes(self) -> tuple[str, ...]:
        return self.schema.classes

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.source!r})"

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


def numbers_of(own: tuple[str, ...], wanted: tuple[str, ...]) -> NDArray[np.int64]:
    """The number that each class has among the wanted ones; −1 for those that are not wanted."""
    places = {name: number for number, name in enumerate(wanted)}
    return np.array([places.get(name, -1) for name in own], np.int64)
