"""What a format hands over: tables with named columns, one row a sample."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
What = Literal["bytes", "array", "text", "other"]


@dataclass(frozen=True)
class Holds:
    """What a column holds in each row.

    bytes   the content of some file            array   `shape` of `dtype`; () is one number, None a free dimension
    text    a string                            other   something that no field can hold, as `note` says
    """

    what: What
    dtype: str = ""
    shape: tuple[int | None, ...] = ()
    classes: tuple[str, ...] = ()  # the names behind its numbers, where the file tells them
    is_image: bool = False  # the file itself says so
    note: str = ""

    @property
    def words(self) -> str:
        """For people: uint8 28×28, text, bytes."""
        if self.what == "other":
            return self.note
        if self.what != "array":
            return self.what
        shape = "×".join("?" if side is None else str(side) for side in self.shape)
        return f"{self.dtype} {shape}".rstrip()


class Places(NamedTuple):
    """Where some rows lie: one buffer, and the byte in it at which each row begins."""

    buffer: Any
    offsets: Numbers


class Column(Protocol):
    """One column of a table; safe in threads. Arrays that it gives are read-only or the caller's own."""

    @property
    def holds(self) -> Holds: ...
    def value(self, row: int) -> Any: ...
    def values(self, rows: Numbers) -> NDArray[Any] | None:
        """Several rows as one array; None where values differ in size or are texts."""
        ...

    def whole(self) -> NDArray[Any]:
        """All rows: numbers as they are, texts as objects; −1 or None where there is nothing."""
        ...

    def flat(self) -> NDArray[Any]:
        """The numbers of all rows one after another."""
        ...

    def places(self, rows: Numbers) -> Places | None:
        """Where rows of one fixed size lie in mapped memory, where they do."""
        ...


@dataclass(frozen=True, eq=False)
class Table:
    """Rows with named columns: a file, or a part of one that is a split of its own.

    `blocks` gives a number for each of some rows that is the same where rows are read together (a row group, a shard).
    `aside` are arrays of another length, such as a list of class names.
    """

    name: str
    file: str | None
    length: int
    columns: Mapping[str, Column]
    split: str | None = None
    group: str | None = None
    blocks: Callable[[Numbers], Numbers] | None = None
    aside: Mapping[str, Column] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)  # of those aside

    @property
    def where(self) -> str:
        """For people: the file, or what arrays in memory are called."""
        return self.file or self.name or "arrays"


class ArrayColumn:
    """A column that is an array in memory or mapped."""

    def __init__(self, array: NDArray[Any], classes: tuple[str, ...] = ()) -> None:
        self.array = array.view()
        self.array.flags.writeable = False
        is_text = array.dtype.kind in "USOT"
        shape = tuple(array.shape[1:])
        self.holds = Holds("text") if is_text else Holds("array", array.dtype.name, shape, classes)

    def value(self, row: int) -> Any:
        value = self.array[row]
        return _text(value) if self.holds.what == "text" else value

    def values(self, rows: Numbers) -> NDArray[Any] | None:
        return None if self.holds.what == "text" else self.array[rows]

    def whole(self) -> NDArray[Any]:
        if self.holds.what != "text":
            return self.array
        return np.array([_text(value) for value in self.array.ravel()], object)

    def flat(self) -> NDArray[Any]:
        return self.array.reshape(-1)

    def gaps(self) -> int:
        """How many rows have no value: None among objects."""
        return sum(value is None for value in self.array.ravel()) if self.array.dtype.kind == "O" else 0

    @functools.cached_property
    def _buffer(self) -> Any:
        # An array that lies in one piece, however it is mapped, is also plain bytes.
        return self.array.reshape(-1).view(np.uint8).data

    def places(self, rows: Numbers) -> Places | None:
        array = self.array
        if not array.flags.c_contiguous or not array.size:
            return None
        return Places(self._buffer, rows * (array.nbytes // len(array)))


def _text(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value) if isinstance(value, str) else value
