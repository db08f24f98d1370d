"""Samples that were left out, as journals and manifests list them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def skipped_count(skipped: Sequence[dict[str, Any]]) -> int:
    """How many samples were left out; an entry may stand for many, and those of older versions stand for one."""
    return sum(entry.get("count", 1) for entry in skipped)
