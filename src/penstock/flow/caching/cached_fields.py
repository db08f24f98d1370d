"""Samples of any kind as rows of a pack, and back, without losing a bit.

A pack that is a cache is read by nobody else, so its schema follows from what the samples are, not from what they
mean: pixels as an image, masks as a mask, numbers, texts, and all the rest as arrays. Every name gets a prefix,
because a pack has columns of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from penstock.errors import RecipeError
from penstock.samples import RESERVED, Field, Kind, Sample, Schema

PREFIX = "sample."
INDEX = "index"  # the number that the sample has in its source


def cache_schema(sample: Sample, kinds: Mapping[str, Kind]) -> Schema:
    """The schema that stores samples like this one; RecipeError where a pack cannot."""
    fields = [_field(name, value, kinds.get(name)) for name, value in _stored(sample).items()]
    return Schema((*fields, Field(INDEX, "number", "int64")))


def _stored(sample: Sample) -> Sample:
    """All of a sample but what it does not say of itself."""
    return {name: value for name, value in sample.items() if value is not None or name not in RESERVED}


def _field(name: str, value: Any, kind: Kind | None) -> Field:
    if isinstance(value, str):
        return Field(PREFIX + name, "text")
    array = np.asarray(value)
    if isinstance(value, bytes) or array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise RecipeError(
            f"cache(folder) keeps numbers, arrays of numbers and texts, and {name!r} is {type(value).__name__}"
            f"{f' of {array.dtype}' if isinstance(value, np.ndarray) else ''}. Leave it out before the cache, turn it "
            'into an array, or use cache("memory").'
        )
    if array.ndim == 0:
        return Field(PREFIX + name, "number", array.dtype.name)
    if kind == "image" and array.dtype == np.uint8 and array.ndim == 3 and array.shape[2] == 3 and array.size:
        return Field(PREFIX + name, "image")
    if kind == "mask" and array.dtype in (np.uint8, np.uint16) and array.ndim == 2 and array.size:
        return Field(PREFIX + name, "mask", array.dtype.name)
    return Field(PREFIX + name, "array", array.dtype.name, (None,) * array.ndim)


def to_row(sample: Sample, index: int, schema: Schema) -> Sample:
    """A sample as the pack stores it; ValueError where it is unlike the first one."""
    stored = _stored(sample)
    names = [field.name.removeprefix(PREFIX) for field in schema.fields if field.name != INDEX]
    if set(names) != set(stored):
        raise ValueError(f"it has the fields {', '.join(stored)}, and the first sample has {', '.join(names)}")
    for name in names:
        _check_like(schema[PREFIX + name], name, stored[name])
    return {**{PREFIX + name: stored[name] for name in names}, INDEX: np.int64(index)}


def _check_like(field: Field, name: str, value: Any) -> None:
    if field.kind == "text":
        if not isinstance(value, str):
            raise ValueError(f"{name!r} is {type(value).__name__}, and a text in the first sample")
        return
    array = np.asarray(value)
    dtype = np.dtype(field.dtype or "uint8")
    dimensions = {"number": 0, "image": 3, "mask": 2}.get(field.kind, len(field.shape or ()))
    if array.dtype != dtype or array.ndim != dimensions:
        raise ValueError(
            f"{name!r} is {array.dtype} of {array.ndim} dimensions, and {dtype} of {dimensions} in the first sample"
        )


def from_row(row: Mapping[str, Any]) -> Sample:
    """The sample as it was."""
    return {name.removeprefix(PREFIX): value for name, value in row.items() if name.startswith(PREFIX)}
