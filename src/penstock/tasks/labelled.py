"""A source as a task sees it: its image as `image`, its label as `label`, classes by the numbers of the task."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.flow.making.clips import number_videos
from penstock.samples import RESERVED, Field, Numbers, Raw, Sample, Schema, Store, Subset, View
from penstock.samples.store import ImageStorage

# A view of a source that shows one image of it as `image`: what the views of all tasks share.


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


LABEL = "label"


def labelled(source: Store, image: str, label: str | None, classes: Sequence[str]) -> Store:
    """The source with these two fields alone, under our names; as it is where nothing changes. Subsets stay subsets."""
    if _is_so_already(source.schema, image, label, classes):
        return source
    if isinstance(source, Subset):
        return Subset(labelled(source.source, image, label, classes), source.indices)
    return Labelled(source, image, label, tuple(classes))


def _is_so_already(schema: Schema, image: str, label: str | None, classes: Sequence[str]) -> bool:
    names = [field.name for field in schema.fields]
    same = names == ([IMAGE] if label is None else [IMAGE, LABEL])
    return same and image == IMAGE and label in (None, LABEL) and (label is None or schema.classes == tuple(classes))


class Labelled(OneImage):
    """The image and the label of another source."""

    def __init__(self, source: Store, image: str, label: str | None, classes: tuple[str, ...]) -> None:
        fields = [Field(IMAGE, "image")]
        if label is not None:
            fields.append(_label_field(source.schema[label], len(classes)))
        super().__init__(source, image, Schema(tuple(fields), classes))
        self._label = label

    def _renamed(self, sample: Sample) -> Sample:
        kept: Sample = {name: sample[name] for name in RESERVED if name in sample}
        if self._label is not None:
            kept[LABEL] = self._renumbered(np.asarray(sample[self._label]))[()]
        return kept

    def column(self, name: str) -> NDArray[Any]:
        if name == LABEL and self._label is not None:
            return self._renumbered(self._stored(self._label))
        return super().column(name)

    def _stored(self, name: str) -> NDArray[Any]:
        """The column of the other source; vectors of millions of frames come much faster gathered."""
        found = self.source.gather(name, np.arange(len(self.source)))
        return self.source.column(name) if found is None else np.asarray(found)

    def gather(self, name: str, indices: Numbers) -> NDArray[Any] | None:
        if name != LABEL or self._label is None:
            raise KeyError(name)
        found = self.source.gather(self._label, indices)
        return None if found is None else self._renumbered(found)

    def group_numbers(self) -> NDArray[Any] | None:
        """Which video each frame is of; asked of the other source, because its numbers of frames tell it too."""
        return None if self.source.group_numbers() is None else number_videos(self.source)

    def fingerprint(self) -> str | None:
        inner = self.source.fingerprint()
        return None if inner is None else f"{inner} {self._image} {self._label} {self.schema.classes}"

    def _renumbered(self, labels: NDArray[Any]) -> NDArray[Any]:
        return renumbered(labels, self._numbers, self.schema[LABEL].kind, len(self.schema.classes))


def _label_field(field: Field, count: int) -> Field:
    if field.kind == "class":
        return Field(LABEL, "class")
    return Field(LABEL, field.kind, "int64", (count,))


def renumbered(labels: NDArray[Any], numbers: NDArray[np.int64], kind: str, count: int) -> NDArray[Any]:
    """Class numbers, or label vectors (whose columns are the classes), in another order of classes."""
    if kind == "class":
        values = labels.astype(np.int64)
        return np.where(values >= 0, numbers[np.maximum(values, 0)], -1) if len(numbers) else values
    if not len(numbers):
        return labels
    out = np.full((*labels.shape[:-1], count), -1, np.int64)
    kept = numbers >= 0
    out[..., numbers[kept]] = labels[..., kept]
    return out
