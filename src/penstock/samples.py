"""The words that everything meets in: field, schema, sample, source.

A Source is anything with `schema`, `len`, `read(index)` (disk) and `decode(raw)` (CPU). That is all a
user's own source needs. Sources of ours say more, each part optional and looked for by name:

    annotations(index)   every field but the pixels, without decoding anything
    annotations_many(indices)   the same for several samples, where that is faster than one by one
    column(name)         one stored value for every sample, as an array (groups, labels, splits)
    label_counts()       how often each class occurs in each sample, where one sample may have several
    lock_wait_seconds()  how long the calling thread has waited for a lock that reading takes; `lock_name` says which
    read_many(indices, allocate)   what `read` and `origin` give for several samples, read into memory that
                         `allocate(size)` gives; None for those that are better asked for one by one
    origin(index)        the file behind a sample and its state, to notice that it changed
    problems()           what is wrong with the user's files, all at once, as far as it costs no reading of pixels
    damage()             files that cannot be read; `damage_is_known` says that asking costs nothing
    parts                pieces that are cheap only in order (a video, a raster): see `Streamed`
    encoded_images       whether `read` gives the bytes of an image file, which a pack may keep as they are
    damaged(indices)     which of these samples do not have their checksum, by position, and why: asked where a flow
                         finds the bytes without `read`
    default_codec        how pixels without such bytes are stored unless the user says otherwise
    made_from()          what a pack says of where it came from
    notes()              what a pack says of how it came about, such as boxes that were assigned
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.headers import UnreadableImage
from penstock.errors import DataError, HopError, Problem, RecipeError, Sealed, nearest
from penstock.problems import as_source, known_problems, refuse_problems
from penstock.storage.mapped import refuse_lost_files
from penstock.wording import counted

Kind = Literal["image", "mask", "array", "class", "boxes", "labels", "number", "text"]
Sample = dict[str, Any]

# What a sample may say about itself beside its fields; never part of a schema.
RESERVED = ("key", "group", "split", "origin")


@dataclass(frozen=True)
class Field:
    """One named value of a sample.

    image   H×W×3 uint8 RGB                      mask    H×W of whole numbers, never interpolated
    class   a number into `Schema.classes`       boxes   n×4 float32, x1 y1 x2 y2, pixels of this image
    labels  a vector of `dtype`                  array   `shape` of `dtype`; None is a free dimension
    number  one value of `dtype`                 text    a string

    A `class` may be −1, "no label"; `labels` may hold −1, "not labelled".
    """

    name: str
    kind: Kind
    dtype: str = ""
    shape: tuple[int | None, ...] | None = None

    def __post_init__(self) -> None:
        if self.name in RESERVED:
            raise RecipeError(f"a field cannot be called {self.name!r}: that name says where a sample comes from.")
        if self.kind == "array" and (not self.dtype or self.shape is None):
            raise RecipeError(f"field {self.name!r}: an array needs dtype and shape (None for a free dimension).")
        if self.shape is not None and 0 in self.shape:
            raise RecipeError(f"field {self.name!r}: shape {self.shape} holds nothing; leave the field out.")
        if self.dtype and (np.dtype(self.dtype).kind not in "biuf" or np.dtype(self.dtype).itemsize > 8):
            raise RecipeError(f"field {self.name!r}: dtype {self.dtype!r} is not a number type that a pack can store.")


@dataclass(frozen=True)
class Schema:
    """The fields of every sample of a source, and the names behind its class numbers."""

    fields: tuple[Field, ...]
    classes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Field:
        for field in self.fields:
            if field.name == name:
                return field
        names = [field.name for field in self.fields]
        raise KeyError(f"no field {name!r}; there are {', '.join(names)}.{nearest(name, names)}")

    def __contains__(self, name: object) -> bool:
        return any(field.name == name for field in self.fields)

    @functools.cached_property
    def image(self) -> Field | None:
        """The field that a pack stores as its payload: the first image, if there is one."""
        return next((field for field in self.fields if field.kind == "image"), None)

    @property
    def label(self) -> Field | None:
        """The field that says what a whole sample is: the first class, if there is one."""
        return next((field for field in self.fields if field.kind == "class"), None)


class Raw(NamedTuple):
    """What the read hop hands to the decode hop: which sample, and its bytes (or undecoded pixels)."""

    index: int  # type: ignore[assignment]  # shadows tuple.index, which nobody calls
    data: Any


@runtime_checkable
class Source(Protocol):
    """Anything that samples can be read from; see the top of this file for what it may add."""

    @property
    def schema(self) -> Schema: ...
    def __len__(self) -> int: ...
    def read(self, index: int) -> Raw: ...
    def decode(self, raw: Raw) -> Sample: ...


class Origin(NamedTuple):
    """The file a sample comes from, its size, and a number that changes with it (for files when they were changed)."""

    file: str
    size: int
    version: int


class ReadSample(NamedTuple):
    """A sample that was read, and the state that its file was in; None where nobody looked at it."""

    raw: Raw
    origin: Origin | None = None


@runtime_checkable
class Part(Protocol):
    """A piece of a source that is cheap only in order: one video, one raster."""

    @property
    def key(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def split(self) -> str | None: ...
    @property
    def expected(self) -> int:
        """How many samples will come, as far as can be known without decoding."""
        ...

    @property
    def label_counts(self) -> dict[int, int]:
        """How often each class number occurs, for splits that keep rare classes on both sides."""
        ...

    def origin(self) -> Origin: ...
    def stream(self, start: int = 0) -> Iterator[Raw]:
        """The samples in order, from number `start` of this part; raises at the end if labels do not fit."""
        ...

    def decode(self, raw: Raw) -> Sample: ...
    def annotations(self, index: int) -> Sample: ...


@runtime_checkable
class Streamed(Protocol):
    """A source made of parts."""

    @property
    def parts(self) -> Sequence[Part]: ...


def sample_at(source: Source, index: int) -> Sample:
    """Read and decode one sample; negative numbers count from the end. A file that fails is named."""
    refuse_problems(source, leaves_unreadable=True)
    position = checked_index(index, len(source))
    hop = "read"
    try:
        raw = source.read(position)
        hop = "decode"
        return source.decode(raw)
    except (OSError, UnreadableImage) as error:
        raise HopError(hop, describe(source, position), str(error)) from error
    finally:
        refuse_lost_files()


def checked_index(index: int, length: int) -> int:
    """Turn a Python index into 0..length-1, or raise IndexError with the limits."""
    position = int(index)
    if position < 0:
        position += length
    if not 0 <= position < length:
        raise IndexError(f"sample {index} does not exist: there are {counted(length, 'sample')}.")
    return position


def describe(source: Source, index: int) -> str:
    """Name a sample in an error message: its key where the source knows it without decoding, else its number."""
    annotations = getattr(source, "annotations", None)
    try:
        key = annotations(index).get("key") if annotations is not None else None
    except (OSError, ValueError, DataError):  # what is damaged may not even tell its name
        key = None
    return f"sample {index} ({key})" if key else f"sample {index}"


class Subset(Sealed):
    """Some samples of a source, in a given order, without copying any."""

    def __init__(self, source: Source, indices: NDArray[np.integer] | Sequence[int]) -> None:
        self.source: Source = as_source(source)
        self.indices = np.asarray(indices, dtype=np.int64)
        self.encoded_images: bool = getattr(self.source, "encoded_images", False)
        self.default_codec: str = getattr(self.source, "default_codec", "png")
        self.tells_origins = hasattr(self.source, "origin")

    @property
    def schema(self) -> Schema:
        return self.source.schema

    @property
    def classes(self) -> tuple[str, ...]:
        return self.source.schema.classes

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Sample:
        return sample_at(self, index)

    def read(self, index: int) -> Raw:
        return self.source.read(int(self.indices[index]))

    def decode(self, raw: Raw) -> Sample:
        return self.source.decode(raw)

    def annotations(self, index: int) -> Sample:
        return annotations_of(self.source, int(self.indices[index]))

    def annotations_many(self, indices: NDArray[np.int64]) -> list[Sample]:
        return annotations_of_many(self.source, self.indices[indices])

    def read_many(self, indices: Sequence[int], allocate: Callable[[int], memoryview]) -> list[ReadSample | None]:
        if not hasattr(self.source, "read_many"):
            return [None] * len(indices)
        return list(self.source.read_many(self.indices[indices].tolist(), allocate))

    def column(self, name: str) -> NDArray[Any]:
        return column_of(self.source, name)[self.indices]

    def origin(self, index: int) -> Origin:
        return origin_of_sample(self.source, int(self.indices[index]))

    def problems(self) -> list[Problem]:
        """Those of the whole source; unreadable samples may have been left out, and reading refuses the others."""
        return [problem for problem in known_problems(self.source) if not problem.unreadable]


def column_of(source: Source, name: str) -> NDArray[Any]:
    """A stored value for every sample; KeyError where the source has no such column."""
    column = getattr(source, "column", None)
    if column is None:
        raise KeyError(f"{type(source).__name__} has no columns.")
    values: NDArray[Any] = np.asarray(column(name))
    return values


def origin_of_sample(source: Source, index: int) -> Origin:
    """Where a sample comes from; a source that cannot tell gives an origin that never changes."""
    origin = getattr(source, "origin", None)
    if origin is None:
        return Origin(type(source).__name__, index, 0)
    found: Origin = origin(index)
    return found


def annotations_of(source: Source, index: int) -> Sample:
    """Every field but the pixels; a source that cannot tell without decoding decodes."""
    annotations = getattr(source, "annotations", None)
    if annotations is not None:
        return dict(annotations(index))
    sample = source.decode(source.read(index))
    pixels = {field.name for field in source.schema.fields if field.kind in ("image", "mask")}
    return {name: value for name, value in sample.items() if name not in pixels}


def annotations_of_many(source: Source, indices: NDArray[np.int64]) -> list[Sample]:
    """Every field but the pixels of these samples, together where the source can."""
    many = getattr(source, "annotations_many", None)
    if many is None:
        return [annotations_of(source, index) for index in indices.tolist()]
    found: list[Sample] = many(indices)
    return found


class Concat(Sealed):
    """Several sources one after another; classes are joined by name, so numbers may change."""

    def __init__(self, sources: Sequence[Source]) -> None:
        if not sources:
            raise RecipeError("concat needs at least one source.")
        self.sources: tuple[Source, ...] = tuple(map(as_source, sources))
        self._starts = np.cumsum([0] + [len(source) for source in self.sources])
        classes = tuple(dict.fromkeys(name for source in self.sources for name in source.schema.classes))
        self._numbers = [_class_numbers(source.schema.classes, classes) for source in self.sources]
        self.schema = replace(_common_fields(self.sources), classes=classes)
        self.encoded_images = all(getattr(source, "encoded_images", False) for source in self.sources)
        self.default_codec: str = getattr(self.sources[0], "default_codec", "png")
        self.tells_origins = all(hasattr(source, "origin") for source in self.sources)

    @property
    def classes(self) -> tuple[str, ...]:
        return self.schema.classes

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, index: int) -> Sample:
        return sample_at(self, index)

    def _locate(self, index: int) -> tuple[int, int]:
        which = int(np.searchsorted(self._starts, index, side="right")) - 1
        return which, index - int(self._starts[which])

    def read(self, index: int) -> Raw:
        which, inner = self._locate(index)
        return Raw(index, self.sources[which].read(inner).data)

    def decode(self, raw: Raw) -> Sample:
        which, inner = self._locate(raw.index)
        return self._renumbered(self.sources[which].decode(Raw(inner, raw.data)), which)

    def origin(self, index: int) -> Origin:
        which, inner = self._locate(index)
        return origin_of_sample(self.sources[which], inner)

    def problems(self) -> list[Problem]:
        return [problem for source in self.sources for problem in known_problems(source)]

    def annotations(self, index: int) -> Sample:
        which, inner = self._locate(index)
        return self._renumbered(annotations_of(self.sources[which], inner), which)

    def column(self, name: str) -> NDArray[Any]:
        columns = [column_of(source, name) for source in self.sources]
        if name in self.schema and self.schema[name].kind == "class":
            columns = [_renumber(column, numbers) for column, numbers in zip(columns, self._numbers, strict=True)]
        return np.concatenate(columns)

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


def _common_fields(sources: Sequence[Source]) -> Schema:
    first = sources[0].schema
    for number, source in enumerate(sources[1:], start=1):
        if source.schema.fields != first.fields:
            raise RecipeError(
                f"source {number} has other fields than source 0: {_names(source.schema)} and {_names(first)}. "
                "Only sources of one kind can be joined."
            )
        per_frame = any(field.kind == "labels" and field.name == "labels" for field in first.fields)
        if per_frame and source.schema.classes != first.classes:
            raise RecipeError(
                f"source {number} labels {source.schema.classes}, source 0 labels {first.classes}. "
                "Frame labels are vectors in the order of the classes: pack both with the same classes."
            )
    return first


def _names(schema: Schema) -> str:
    return ", ".join(f"{field.name} ({field.kind})" for field in schema.fields)


def concat(sources: Sequence[Source]) -> Concat:
    """Join several sources of one kind into one; classes are joined by name."""
    return Concat(sources)
