"""Arrow in files: folders that Hugging Face writes, and Parquet with images, boxes or paths in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.formats.format import Format, Found, Look, is_named_so


def is_hugging_face(folder: Path) -> bool:
    return (folder / "dataset_dict.json").is_file() or (folder / "state.json").is_file()


def recognise_parquet(look: Look) -> Found | None:
    if not is_named_so(look, "parquet"):
        return None
    return Found("Parquet", look.seen) if look.is_folder else Found(_kind_of_file(look.path))


def _kind_of_file(path: Path) -> str:
    """Parquet with images inside, a table of boxes, or a table of paths."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from penstock.formats.tables import kind_of_columns

    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError, ValueError):  # ValueError: names that are not UTF-8
        return "Parquet"  # whose error says what is wrong with it
    if b"geo" in (schema.metadata or {}):
        return "Boxes"
    binary = [field for field in schema if pa.types.is_struct(field.type) or _is_binary(field.type)]
    return "Parquet" if binary else kind_of_columns(schema.names) or "Parquet"


def _is_binary(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


HUGGING_FACE = Format(
    "hugging_face",
    "penstock.formats.arrow.hugging_face:HuggingFace",
    endings=(".arrow",),
    magic=b"ARROW1",
    marks=is_hugging_face,
)
PARQUET = Format(
    "parquet",
    "penstock.formats.arrow.parquet:Parquet",
    endings=(".parquet", ".pq", ".geoparquet"),
    magic=b"PAR1",
    recognise=recognise_parquet,
)
