"""Shards of MosaicML Streaming: known by their index.json."""

from __future__ import annotations

from pathlib import Path

from penstock.formats.format import Format
from penstock.storage.documents import load_json
from penstock.storage.plain_files import read_text


def is_mds(folder: Path) -> bool:
    """Whether it has an index of shards, or all folders in it have."""
    below = [inner for inner in folder.iterdir() if inner.is_dir() and not inner.name.startswith(".")]
    return _is_index(folder / "index.json") or (bool(below) and all(_is_index(one / "index.json") for one in below))


def _is_index(path: Path) -> bool:
    try:
        values = load_json(read_text(path))
    except (OSError, ValueError):
        return False
    shards = values.get("shards") if isinstance(values, dict) else None
    return isinstance(shards, list) and all(isinstance(one, dict) and one.get("format") == "mds" for one in shards[:1])


MDS = Format("mds", "penstock.formats.mds.mds:MDS", marks=is_mds)
