"""The fields of a sample as a pack stores them: checked against the schema, and never changed in silence.

Numbers are cast only where that keeps their value (floats may lose digits, not become infinite). Masks and images
beside the first are encoded here, in the worker. What does not fit raises ValueError with the short reason; the hop
adds the sample. Reading gives values back in the type that their field promises.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.images import encode_image
from penstock.samples import RESERVED, Field, Sample, Schema, Store
from penstock.wording import counted

MASK_TYPES = (np.bool_, np.uint8, np.uint16)
FIRST_SAMPLES = 100  # are tried until one can be read


def typed_schema(source: Store) -> Schema:
    """The schema with the type of every field: those that it leaves open have that of the first sample.

    Later samples must fit into it without change, so that a pack gives back what its source gave.
    """
    schema = source.schema
    if not any(_is_open(field) for field in schema.fields):
        return schema
    first = _first_sample(source)
    fields = tuple(
        replace(field, dtype=_type_of(field, first[field.name])) if _is_open(field) and field.name in first else field
        for field in schema.fields
    )
    return replace(schema, fields=fields)


def _is_open(field: Field) -> bool:
    return field.kind in ("labels", "number", "mask") and not field.dtype


def _type_of(field: Field, value: Any) -> str:
    dtype = np.asarray(value).dtype
    if field.kind == "mask":  # the others are told apart by what is stored
        return "bool" if dtype == np.bool_ else ""
    return dtype.name if dtype.kind in "biuf" and dtype.itemsize <= 8 else ""


def _first_sample(source: Store) -> Sample:
    """The first sample that can be read; what is wrong with those before it, packing says itself."""
    for index in range(min(len(source), FIRST_SAMPLES)):
        with contextlib.suppress(Exception):
            return source.decode(source.read(index))
    return {}


def stored_fields(values: Sample, schema: Schema) -> Sample:
    """Every field but the first image, and what the sample says of itself, ready for a column."""
    stored = {name: plain_text(values[name]) for name in RESERVED if values.get(name) is not None}
    image = schema.image
    for field in schema.fields:
        if field is image:
            continue
        if field.name not in values:
            there = ", ".join(name for name in values if name not in RESERVED)
            raise ValueError(f"field {field.name!r} is missing; there are {there or 'none'}")
        try:
            stored[field.name] = _stored(field, values[field.name], schema)
        except (ValueError, TypeError) as error:
            raise ValueError(f"field {field.name!r}: {error}") from error
    return stored


def plain_text(value: Any) -> str:
    """Text that UTF-8 can hold: a file name of other bytes is written with escapes."""
    text = str(value)
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def stored_bytes(values: Sample) -> int:
    """About how much a row takes beside its payload; the same on every machine."""
    return sum(map(_size, values.values()))


def _size(value: Any) -> int:
    if isinstance(value, (str, bytes)):  # a union of types would take three times as long
        return len(value)
    return int(value.nbytes) if isinstance(value, np.ndarray) else 8


def _stored(field: Field, value: Any, schema: Schema) -> Any:
    if field.kind == "text":
        if not isinstance(value, str):
            raise ValueError(f"a text is expected and this is {type(value).__name__}")
        return plain_text(value)
    if field.kind == "image":
        return encode_image(checked_pixels(value), "png")
    if field.kind == "mask":
        return encode_image(_checked_mask(value, field), "png")
    if field.kind == "class":
        return _class_number(value, schema)
    if field.kind == "boxes":
        boxes = np.asarray(value)
        if boxes.size and (boxes.ndim != 2 or boxes.shape[1] != 4):
            raise ValueError(f"boxes have shape n×4, and these have {boxes.shape}")
        return lossless(boxes.reshape(-1, 4), np.dtype(np.float32))
    array = lossless(np.asarray(value), np.dtype(field.dtype or "float64"))
    if field.kind == "number":
        if array.ndim:
            raise ValueError(f"one number is expected and this has shape {array.shape}")
        return array[()]
    return _shaped(array, field)


def lossless(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The same values in another type, or ValueError."""
    if array.dtype == dtype:
        return array
    if array.dtype.kind not in "biuf":
        raise ValueError(f"values of type {array.dtype} are not {dtype}")
    with np.errstate(over="ignore", invalid="ignore"):
        cast = array.astype(dtype)
    narrowed = array.dtype.kind == "f" and dtype.kind == "f"
    same = np.array_equal(np.isfinite(cast), np.isfinite(array)) if narrowed else np.array_equal(cast, array)
    if not same:
        raise ValueError(f"values of type {array.dtype} do not fit into {dtype} without change")
    return cast


def checked_pixels(value: Any) -> NDArray[np.uint8]:
    array = np.asarray(value)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3 or 0 in array.shape:
        raise ValueError(f"an image is H×W×3 uint8, and this one is {array.dtype} of shape {array.shape}")
    return np.ascontiguousarray(array)


def _checked_mask(value: Any, field: Field) -> NDArray[Any]:
    array = np.asarray(value)
    if field.dtype and array.dtype != field.dtype:
        raise ValueError(f"the masks before are of type {field.dtype}, and this one is {array.dtype}")
    if array.ndim != 2 or 0 in array.shape or array.dtype not in MASK_TYPES:
        raise ValueError(
            f"a mask is H×W of bool, uint8 or uint16, and this one is {array.dtype} of shape {array.shape}"
        )
    return array.astype(np.uint8) if array.dtype == np.bool_ else array


def _class_number(value: Any, schema: Schema) -> int:
    if type(value) is int and -1 <= value < len(schema.classes):
        return value  # as nearly all are: numpy would take five times as long
    number = lossless(np.asarray(value), np.dtype(np.int64))
    if number.ndim or not -1 <= int(number) < max(len(schema.classes), 1):
        raise ValueError(f"class {value} is not one of the {counted(len(schema.classes), 'class')}, nor −1 for none")
    return int(number)


def _shaped(array: NDArray[Any], field: Field) -> NDArray[Any]:
    if field.shape is None:
        return array.reshape(-1)
    fits = array.ndim == len(field.shape) and all(
        wanted in (None, got) for wanted, got in zip(field.shape, array.shape, strict=True)
    )
    if not fits:
        raise ValueError(f"the schema says shape {field.shape}, and this has {array.shape}")
    return array


def restored(field: Field, value: Any, shape: Any) -> Any:
    """A stored value in the type that the field promises."""
    if field.kind == "text":
        return value
    if field.kind == "class":
        return int(value)
    if field.kind == "number":
        return np.dtype(field.dtype or "float64").type(value)
    if field.kind == "boxes":
        return value
    array = np.asarray(value)
    if field.dtype and array.dtype != np.dtype(field.dtype):
        array = array.astype(field.dtype)
    if shape is not None:
        return array.reshape(shape)
    return array if field.shape is None else array.reshape(field.shape)
