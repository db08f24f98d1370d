"""Views: samples of other stores, without copying any. Each maps its numbers to those below in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError, Problem
from penstock.problems import known_problems
from penstock.samples.schema import Raw, Sample, Schema
from penstock.samples.source import Origin, ReadSample, Source
from penstock.samples.store import FieldsAt, ImagesAt, ImageStorage, Numbers, Places, Store, as_store


class View(Store):
    """All samples of another store, in their order, seen otherwise. Those who inherit say what differs.

    It passes on what does not depend on the fields: where samples come from, what is wrong with them, where their
    images are, and what the system is told about their bytes.
    """

    source: Store

    @property
    def schema(self) -> Schema:
        return self.source.schema

    @property
    def below(self) -> tuple[Store, ...]:
        return (self.source,)

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.source!r})"

    def read(self, index: int) -> Raw:
        return self.source.read(index)

    def decode(self, raw: Raw) -> Sample:
        return self.source.decode(raw)

    @property
    def path(self) -> Path | None:
        return self.source.path

    @property
    def tells_origins(self) -> bool:
        return self.source.tells_origins

    def origin(self, index: int) -> Origin:
        return self.source.origin(index)

    @property
    def has_gaps(self) -> bool:
        return self.source.has_gaps

    def problems(self) -> Sequence[Problem]:
        return known_problems(self.source)

    def damage(self) -> Sequence[Problem]:
        return self.source.damage()

    def damaged(self, indices: Numbers) -> Mapping[int, str]:
        return self.source.damaged(indices)

    @property
    def knows_annotations(self) -> bool:
        return self.source.knows_annotations

    def annotations(self, index: int) -> Sample:
        return self.source.annotations(index)

    def column(self, name: str) -> NDArray[Any]:
        return self.source.column(name)

    def group_numbers(self) -> NDArray[Any] | None:
        return self.source.group_numbers()

    def frame_numbers(self) -> Numbers | None:
        return super().frame_numbers() if "frame" in self.schema else self.source.frame_numbers()

    @property
    def image_storage(self) -> ImageStorage | None:
        return self.source.image_storage

    @property
    def default_codec(self) -> str:
        return self.source.default_codec

    @property
    def statistics(self) -> Mapping[str, Any] | None:
        return self.source.statistics

    def image_sizes(self, indices: Numbers) -> Numbers | None:
        return self.source.image_sizes(indices)

    def uniform_image_size(self) -> tuple[int, int] | None:
        return self.source.uniform_image_size()

    def encoded_places(self, indices: Numbers) -> Places | None:
        return self.source.encoded_places(indices)

    def pixel_places(self, indices: Numbers) -> Places:
        return self.source.pixel_places(indices)

    def read_many(self, indices: Sequence[int], allocate: Callable[[int], memoryview]) -> list[ReadSample | None]:
        return self.source.read_many(indices, allocate)

    def shard_numbers(self, indices: Numbers) -> NDArray[Any] | None:
        return self.source.shard_numbers(indices)

    @property
    def bytes(self) -> int | None:
        return self.source.bytes

    def will_need(self, indices: Numbers) -> int:
        return self.source.will_need(indices)

    def resident_share(self, indices: Numbers) -> float:
        return self.source.resident_share(indices)

    def give_back(self, indices: Numbers) -> None:
        self.source.give_back(indices)

    def prepare(self) -> None:
        self.source.prepare()

    @property
    def is_prepared(self) -> bool:
        return self.source.is_prepared


def _checked_indices(indices: Any, length: int) -> Numbers:
    """Numbers of samples; a mask, fractions and numbers outside of the source are refused."""
    numbers = np.asarray(indices)
    if numbers.dtype == np.bool_:
        raise OptionError(
            "Subset takes the numbers of samples, and these are True and False. For a mask pass np.flatnonzero(mask)."
        )
    if numbers.ndim != 1 or (len(numbers) and numbers.dtype.kind not in "iu"):
        raise OptionError(
            f"Subset takes a list of whole numbers, and this is {numbers.ndim}-dimensional {numbers.dtype}."
        )
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < length):
        wrong = numbers[(numbers < 0) | (numbers >= length)][0]
        raise OptionError(f"Subset: there is no sample {wrong}: there are {length:,}, from 0 to {length - 1}.")
    return numbers.astype(np.int64, copy=False)


class Subset(Store):
    """Some samples of a source, in a given order, without copying any."""

    def __init__(self, source: Source, indices: NDArray[np.integer] | Sequence[int]) -> None:
        self.source: Store = as_store(source)
        self.indices = _checked_indices(indices, len(self.source))

    @property
    def schema(self) -> Schema:
        return self.source.schema

    @property
    def below(self) -> tuple[Store, ...]:
        return (self.source,)

    def __len__(self) -> int:
        return len(self.indices)

    def read(self, index: int) -> Raw:
        return self.source.read(int(self.indices[index]))

    def decode(self, raw: Raw) -> Sample:
        return self.source.decode(raw)

    def made_from_for_copies(self) -> Mapping[str, Any]:
        return self.source.made_from_for_copies()

    @property
    def tells_origins(self) -> bool:
        return self.source.tells_origins

    def origin(self, index: int) -> Origin:
        return self.source.origin(int(self.indices[index]))

    def problems(self) -> Sequence[Problem]:
        """Those of the whole source; unreadable samples may have been left out, and reading refuses the others."""
        return [problem for problem in known_problems(self.source) if not problem.unreadable]

    @property
    def knows_annotations(self) -> bool:
        return self.source.knows_annotations

    def annotations(self, index: int) -> Sample:
        return self.source.annotations(int(self.indices[index]))

    def annotations_many(self, indices: Numbers) -> list[Sample] | None:
        return self.source.annotations_many(self.indices[indices])

    def read_many(self, indices: Sequence[int], allocate: Callable[[int], memoryview]) -> list[ReadSample | None]:
        return self.source.read_many(self.indices[indices].tolist(), allocate)

    def column(self, name: str) -> NDArray[Any]:
        return self.source.column(name)[self.indices]

    def gather(self, name: str, indices: Numbers) -> NDArray[Any] | None:
        return self.source.gather(name, self.indices[indices])

    def frame_numbers(self) -> Numbers | None:
        inner = self.source.frame_numbers()
        return None if inner is None else inner[self.indices]

    @property
    def image_storage(self) -> ImageStorage | None:
        return self.source.image_storage

    @property
    def default_codec(self) -> str:
        return self.source.default_codec

    @property
    def statistics(self) -> Mapping[str, Any] | None:
        return self.source.statistics

    def images_at(self, indices: Numbers) -> ImagesAt:
        return self.source.images_at(self.indices[indices])

    def fields_at(self, indices: Numbers) -> FieldsAt:
        return self.source.fields_at(self.indices[indices])


class Concat(Store):
    """Several sources one after another; classes are joined by name, so numbers may change."""

    def __init__(self, sources: Sequence[Source]) -> None:
        if not sources:
            raise OptionError("concat needs at least one source.")
        self.sources: tuple[Store, ...] = tuple(map(as_store, sources))
        self._starts = np.cumsum([0] + [len(source) for source in self.sources])
        classes = tuple(dict.fromkeys(name for source in self.sources for name in source.schema.classes))
        self._numbers = [_class_numbers(source.schema.classes, classes) for source in self.sources]
        self._schema = replace(_common_fields(self.sources), classes=classes)

    @property
    def below(self) -> tuple[Store, ...]:
        return self.sources

    def __len__(self) -> int:
        return int(self._starts[-1])

    def _locate(self, index: int) -> tuple[int, int]:
        which = int(np.searchsorted(self._starts, index, side="right")) - 1
        return which, index - int(self._starts[which])

    def read(self, index: int) -> Raw:
        which, inner = self._locate(index)
        return Raw(index, self.sources[which].read(inner).data)

    def decode(self, raw: Raw) -> Sample:
        which, inner = self._locate(raw.index)
        return self._renumbered(self.sources[which].decode(Raw(inner, raw.data)), which)

    @property
    def tells_origins(self) -> bool:
        return all(source.tells_origins for source in self.sources)

    def origin(self, index: int) -> Origin:
        which, inner = self._locate(index)
        return self.sources[which].origin(inner)

    def problems(self) -> Sequence[Problem]:
        return [problem for source in self.sources for problem in known_problems(source)]

    @property
    def knows_annotations(self) -> bool:
        return all(source.knows_annotations for source in self.sources)

    def annotations(self, index: int) -> Sample:
        which, inner = self._locate(index)
        return self._renumbered(self.sources[which].annotations(inner), which)

    def column(self, name: str) -> NDArray[Any]:
        columns = [source.column(name) for source in self.sources]
        if name in self.schema and self.schema[name].kind == "class":
            columns = [_renumber(column, numbers) for column, numbers in zip(columns, self._numbers, strict=True)]
        return np.concatenate(columns)

    @property
    def image_storage(self) -> ImageStorage | None:
        return "encoded" if all(source.encoded_images for source in self.sources) else None

    @property
    def default_codec(self) -> str:
        return self.sources[0].default_codec

    def _renumbered(self, sample: Sample, which: int) -> Sample:
        numbers = self._numbers[which]
        if numbers is None:
            return sample
        for name in self._class_fields():
            sample[name] = _renumber(np.asarray(sample[name]), numbers)[()]
        return sample

    def _class_fields(self) -> Iterator[str]:
        for field in self.schema.fields:
            if field.kind == "class" or (field.kind == "labels" and field.name == "box_label"):
                yield field.name


def _class_numbers(own: tuple[str, ...], joined: tuple[str, ...]) -> NDArray[np.int64] | None:
    if own == joined[: len(own)]:
        return None
    return np.array([joined.index(name) for name in own], dtype=np.int64)


def _renumber(values: NDArray[Any], numbers: NDArray[np.int64] | None) -> NDArray[Any]:
    if numbers is None or values.size == 0:
        return values
    return np.where(values >= 0, numbers[np.maximum(values, 0)], values).astype(values.dtype)


def _common_fields(sources: Sequence[Store]) -> Schema:
    first = sources[0].schema
    for number, source in enumerate(sources[1:], start=1):
        if source.schema.fields != first.fields:
            raise OptionError(
                f"source {number} has other fields than source 0: {_names(source.schema)} and {_names(first)}. "
                "Only sources of one kind can be joined."
            )
        per_frame = any(field.kind == "labels" and field.name == "labels" for field in first.fields)
        if per_frame and source.schema.classes != first.classes:
            raise OptionError(
                f"source {number} labels {source.schema.classes}, source 0 labels {first.classes}. "
                "Frame labels are vectors in the order of the classes: pack both with the same classes."
            )
    return first


def _names(schema: Schema) -> str:
    return ", ".join(f"{field.name} ({field.kind})" for field in schema.fields)


def concat(sources: Sequence[Source]) -> Concat:
    """Join several sources of one kind into one; classes are joined by name."""
    return Concat(sources)
