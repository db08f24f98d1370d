"""What a source was made from, in words that a pack can keep: nothing per sample, nothing of this machine's state."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.storage.locations import readable_name

# More names than this are counted instead of listed.
LISTED_NAMES = 8


def provenance(**given: Any) -> dict[str, Any]:
    """The arguments of a source as plain values; those that were not given are left out."""
    return {name: _plain(value) for name, value in given.items() if value is not None and value is not False}


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return readable_name(os.fspath(value))
    if isinstance(value, str):
        return readable_name(value)
    if isinstance(value, int | float | bool):
        return value
    if isinstance(value, Mapping):
        return f"{len(value)} entries"
    if isinstance(value, Sequence):
        return [_plain(item) for item in value] if len(value) <= LISTED_NAMES else f"{len(value):,} items"
    return f"a {type(value).__name__} in memory"
