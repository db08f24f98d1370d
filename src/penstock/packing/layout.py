"""How a pack lies on disk: names, versions, and the Arrow schema that a Schema becomes.

trees.pack/
  pack.json            the manifest, written last
  index.arrow          one record batch of fixed-width columns, one row per sample
  shard-00000.arrow    Arrow IPC files, uncompressed; one row per sample or video frame
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import OptionError
from penstock.samples import Field, Schema

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT_VERSION = 1
MANIFEST_NAME = "pack.json"
INDEX_NAME = "index.arrow"

# 8 MiB: large enough that a footer entry costs nothing, small enough that a damaged one loses little.
BATCH_BYTES = 8 << 20
BATCH_BYTES_LIMIT = 16 << 20


# What pyarrow and numpy raise on damaged Arrow files, ArrowInvalid being a ValueError.
UNREADABLE_ARROW = (OSError, ValueError, TypeError, LookupError, NotImplementedError, MemoryError, OverflowError)


def shard_name(number: int) -> str:
    return f"shard-{number:05d}.arrow"


def arrow_schema(schema: Schema, raw_size: tuple[int, int] | None = None) -> pa.Schema:
    """The columns of a shard. With `raw_size` (width, height) the image column holds pixels of that size."""
    import pyarrow as pa

    raw_bytes = raw_size[0] * raw_size[1] * 3 if raw_size else 0
    columns = [pa.field(name, pa.string(), nullable=False) for name in ("key", "group", "split", "origin")]
    columns += [pa.field(name, pa.int32(), nullable=False) for name in ("height", "width")]
    columns.append(pa.field("checksum", pa.uint64(), nullable=False))
    for field in schema.fields:
        columns += _field_columns(field, raw_bytes if field == schema.image else 0)
    taken = [column.name for column in columns]
    doubled = sorted({name for name in taken if taken.count(name) > 1})
    if doubled:
        raise OptionError(f"field {doubled[0]!r} has the name of a column that every pack has; rename the field.")
    return pa.schema(columns)


def column_types(schema: Schema, raw_size: tuple[int, int] | None) -> dict[str, pa.DataType]:
    """The type of each column of a shard, by name."""
    return {column.name: column.type for column in arrow_schema(schema, raw_size)}


def _field_columns(field: Field, raw_bytes: int) -> list[pa.Field]:
    import pyarrow as pa

    if field.kind == "array" and _is_free(field):
        item = pa.large_list(pa.field("item", arrow_number(field.dtype), nullable=False))
        dimensions = len(field.shape or ())
        shape = pa.list_(pa.field("item", pa.int64(), nullable=False), dimensions)
        return [
            pa.field(field.name, item, nullable=False, metadata={"penstock.dtype": field.dtype}),
            pa.field(shape_column(field), shape, nullable=False),
        ]
    kind = _arrow_type(field, raw_bytes)
    metadata: dict[str, str] = {"penstock.kind": field.kind}
    if field.dtype:
        metadata["penstock.dtype"] = field.dtype
    if field.shape is not None:
        metadata["penstock.shape"] = json.dumps(field.shape)
    return [pa.field(field.name, kind, nullable=False, metadata=metadata)]


def _arrow_type(field: Field, raw_bytes: int) -> pa.DataType:
    import pyarrow as pa

    if field.kind in ("image", "mask"):
        return pa.binary(raw_bytes) if raw_bytes else pa.large_binary()
    if field.kind == "boxes":
        corner = pa.field("item", pa.float32(), nullable=False)
        return pa.list_(pa.field("item", pa.list_(corner, 4), nullable=False))
    if field.kind == "class":
        return pa.int64()
    if field.kind == "text":
        return pa.string()
    number = arrow_number(field.dtype or "float64")
    if field.kind == "number":
        return number
    item = pa.field("item", number, nullable=False)
    if field.shape is None or _is_free(field):
        return pa.list_(item)
    return pa.list_(item, math.prod(side or 0 for side in field.shape))


def _is_free(field: Field) -> bool:
    return field.shape is not None and None in field.shape


def shape_column(field: Field) -> str:
    """The column beside an array with free dimensions that holds its shape."""
    return f"{field.name}.shape"


def arrow_number(dtype: str) -> Any:
    """The Arrow type that stores a numpy dtype; truth values are stored as bytes, so that rows can be viewed."""
    import pyarrow as pa

    plain = np.dtype(dtype)
    return pa.uint8() if plain.kind == "b" else pa.from_numpy_dtype(plain)
