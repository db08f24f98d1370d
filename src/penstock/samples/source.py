"""The contract of users: a Source is anything with `schema`, `len`, `read` and `decode`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

from penstock.samples.schema import Raw, Sample, Schema

# The samples between two blocks of one video: no clip of 11 frames at stride 2 reaches across.
NEIGHBOURS = 24


@runtime_checkable
class Source(Protocol):
    """Anything that samples can be read from: `read` is the work of the disk, `decode` that of the CPU.

    Whatever else a source can do, such as telling labels without decoding, it declares by inheriting from
    `penstock.Store`, or by having members with the names and the meaning that they have there.
    """

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


class Segment(ABC):
    """A stretch of a source that is cheap only in order: one video, one raster."""

    key: str
    group: str
    split: str | None

    @property
    @abstractmethod
    def expected(self) -> int:
        """How many samples will come, as far as can be known without decoding."""

    @property
    @abstractmethod
    def label_counts(self) -> dict[int, int]:
        """How often each class number occurs, for splits that keep rare classes on both sides."""

    @abstractmethod
    def origin(self) -> Origin: ...

    @abstractmethod
    def stream(self, start: int = 0) -> Iterator[Raw]:
        """The samples in order, from number `start` of this segment; raises at the end if labels do not fit."""

    @abstractmethod
    def decode(self, raw: Raw) -> Sample: ...

    @abstractmethod
    def annotations(self, index: int) -> Sample: ...

    def guard(self, position: int) -> int:
        """How many samples to leave out from a position on, so that what comes before and after it differs."""
        return NEIGHBOURS

    def stamp(self) -> bytes:
        """Bytes that change when labels or settings do."""
        return repr(sorted(self.label_counts.items())).encode()


def as_segment(given: Any) -> Segment:
    """A segment of the user with the members that have a default."""
    return given if isinstance(given, Segment) else _GivenSegment(given)


class _GivenSegment(Segment):
    """A segment of the user's own class."""

    def __init__(self, given: Any) -> None:
        self._given = given
        self.key, self.group, self.split = given.key, given.group, given.split

    @property
    def expected(self) -> int:
        return int(self._given.expected)

    @property
    def label_counts(self) -> dict[int, int]:
        return dict(self._given.label_counts)

    def origin(self) -> Origin:
        return Origin(*self._given.origin())

    def stream(self, start: int = 0) -> Iterator[Raw]:
        return iter(self._given.stream(start))

    def decode(self, raw: Raw) -> Sample:
        return dict(self._given.decode(raw))

    def annotations(self, index: int) -> Sample:
        return dict(self._given.annotations(index))

    def guard(self, position: int) -> int:
        own = getattr(self._given, "guard", None)
        return super().guard(position) if own is None else int(own(position))

    def stamp(self) -> bytes:
        own = getattr(self._given, "stamp", None)
        return super().stamp() if own is None else bytes(own())
