"""A source as a task sees it: its image as `image`, its label as `label`, classes by the numbers of the task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.samples import RESERVED, Field, Raw, Sample, Schema, Source, Subset, annotations_of, column_of

IMAGE, LABEL = "image", "label"
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
# Members that say something else here, and what says it.
CHANGED_MEMBERS = {"gather": "_gathered", "fingerprint": "_fingerprint"}


def labelled(source: Source, image: str, label: str | None, classes: Sequence[str]) -> Source:
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


class Labelled:
    """A view of another source; nothing is copied."""

    def __init__(self, source: Source, image: str, label: str | None, classes: tuple[str, ...]) -> None:
        self.source, self._image, self._label = source, image, label
        fields = [Field(IMAGE, "image")]
        if label is not None:
            fields.append(_label_field(source.schema[label], len(classes)))
        self.schema = Schema(tuple(fields), classes)
        self._numbers = numbers_of(source.schema.classes, classes)

    def __getattr__(self, name: str) -> Any:
        """What the other source offers beyond the protocol; only that is offered here."""
        if "source" not in self.__dict__ or name not in (*KEPT_MEMBERS, *CHANGED_MEMBERS):
            raise AttributeError(name)
        if name in OF_THE_FIRST_IMAGE and not self._shows_the_first_image:
            raise AttributeError(name)
        offered = getattr(self.source, name)
        return getattr(self, CHANGED_MEMBERS[name]) if name in CHANGED_MEMBERS else offered

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

    def _renamed(self, sample: Sample) -> Sample:
        kept: Sample = {name: sample[name] for name in RESERVED if name in sample}
        if self._label is not None:
            kept[LABEL] = self._renumbered(np.asarray(sample[self._label]))[()]
        return kept

    def column(self, name: str) -> NDArray[Any]:
        if name == LABEL and self._label is not None:
            return self._renumbered(column_of(self.source, self._label))
        return column_of(self.source, name)

    def _gathered(self, name: str, indices: NDArray[np.int64]) -> NDArray[Any]:
        if name != LABEL or self._label is None:
            raise KeyError(name)
        return self._renumbered(self.source.gather(self._label, indices))  # type: ignore[attr-defined]

    def _fingerprint(self) -> str:
        inner: str = self.source.fingerprint()  # type: ignore[attr-defined]
        return f"{inner} {self._image} {self._label} {self.schema.classes}"

    def __repr__(self) -> str:
        return f"Labelled({self.source!r})"

    def _renumbered(self, labels: NDArray[Any]) -> NDArray[Any]:
        return renumbered(labels, self._numbers, self.schema[LABEL].kind, len(self.schema.classes))


def _label_field(field: Field, count: int) -> Field:
    if field.kind == "class":
        return Field(LABEL, "class")
    return Field(LABEL, field.kind, "int64", (count,))


def numbers_of(own: Sequence[str], wanted: Sequence[str]) -> NDArray[np.int64]:
    """The number that each class has among the wanted ones; −1 for those that are not wanted."""
    places = {name: number for number, name in enumerate(wanted)}
    return np.array([places.get(name, -1) for name in own], np.int64)


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
