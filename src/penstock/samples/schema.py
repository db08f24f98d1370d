"""What a sample is made of: fields with a kind, and the schema that all samples of a source share."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from penstock.errors import OptionError, nearest

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
            raise OptionError(f"a field cannot be called {self.name!r}: that name says where a sample comes from.")
        if self.kind == "array" and (not self.dtype or self.shape is None):
            raise OptionError(f"field {self.name!r}: an array needs dtype and shape (None for a free dimension).")
        if self.shape is not None and 0 in self.shape:
            raise OptionError(f"field {self.name!r}: shape {self.shape} holds nothing; leave the field out.")
        if self.dtype and (np.dtype(self.dtype).kind not in "biuf" or np.dtype(self.dtype).itemsize > 8):
            raise OptionError(f"field {self.name!r}: dtype {self.dtype!r} is not a number type that a pack can store.")


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


def ordered_names(names: Sequence[str]) -> list[str]:
    """Split names as people say them: train, val, test, then the rest by name."""
    usual = [name for name in ("train", "val", "test") if name in names]
    return usual + sorted(set(names) - set(usual))
