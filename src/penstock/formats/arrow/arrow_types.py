"""What an Arrow column holds, told from its type and from what Hugging Face notes beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.formats.columns.tables import Holds
from penstock.storage.documents import load_json

if TYPE_CHECKING:
    import pyarrow as pa

ENCODED = {"bytes", "path"}


class Leaf(NamedTuple):
    """A column or a part of a struct, by the names that lead to it."""

    path: tuple[str, ...]
    holds: Holds

    @property
    def name(self) -> str:
        return ".".join(self.path)


def leaves(schema: pa.Schema) -> list[Leaf]:
    """Every column; structs are taken apart, except those of an encoded image."""
    features = _features(schema)
    return [leaf for field in schema for leaf in _below((field.name,), field.type, features.get(field.name))]


def _features(schema: pa.Schema) -> Mapping[str, Any]:
    """What `datasets` notes about columns: images, names of classes, shapes."""
    noted = (schema.metadata or {}).get(b"huggingface")
    try:
        found = load_json(noted)["info"]["features"] if noted else {}
    except (ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _below(path: tuple[str, ...], kind: pa.DataType, feature: Any) -> Iterator[Leaf]:
    import pyarrow as pa

    if not pa.types.is_struct(kind):
        yield Leaf(path, _holds(kind, feature))
        return
    names = {field.name for field in kind}
    if names == ENCODED or names == {"bytes"}:
        is_image = isinstance(feature, dict) and feature.get("_type") == "Image"
        yield Leaf(path, Holds("bytes", is_image=is_image))
        return
    for field in kind:
        inner = feature.get(field.name) if isinstance(feature, dict) else None
        yield from _below((*path, field.name), field.type, inner)


def _holds(kind: pa.DataType, feature: Any) -> Holds:
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return Holds("text")
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        is_image = isinstance(feature, dict) and feature.get("_type") == "Image"
        return Holds("bytes", is_image=is_image)
    shape, inner = _nested(kind)
    while isinstance(feature, dict) and isinstance(feature.get("feature"), dict):
        feature = feature["feature"]
    noted = feature if isinstance(feature, dict) else {}
    if not (types.is_integer(inner) or types.is_floating(inner) or types.is_boolean(inner)):
        return Holds("other", note=f"it holds {kind}, which no field can hold")
    shape = _noted_shape(noted.get("shape"), shape)
    dtype = "bool" if types.is_boolean(inner) else str(inner.to_pandas_dtype()().dtype)
    return Holds("array", dtype, shape, _noted_names(noted.get("names")))


def _noted_shape(noted: Any, shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """The sides that `datasets` notes, where they are sides of as many dimensions."""
    is_shape = isinstance(noted, list) and all(side is None or (type(side) is int and side >= 0) for side in noted)
    return tuple(noted) if is_shape and len(noted) == len(shape) > 0 else shape


def _noted_names(noted: Any) -> tuple[str, ...]:
    return tuple(noted) if isinstance(noted, list) and all(isinstance(name, str) for name in noted) else ()


def _nested(kind: pa.DataType) -> tuple[tuple[int | None, ...], pa.DataType]:
    """The shape of lists of lists, and what is at the bottom."""
    import pyarrow as pa

    if isinstance(kind, pa.ExtensionType):
        kind = kind.storage_type
    if pa.types.is_fixed_size_list(kind):
        shape, inner = _nested(kind.value_type)
        return (kind.list_size, *shape), inner
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        shape, inner = _nested(kind.value_type)
        return (None, *shape), inner
    return (), kind
