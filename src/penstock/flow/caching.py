"""Samples that are made once: kept in memory within the budget, or as a pack on disk."""

from __future__ import annotations

from pathlib import Path

from penstock.flow.chains import Chain
from penstock.samples import Source


def cached(source: Source, chain: Chain, place: str | Path) -> Source:
    """A source that gives what the chain makes of each sample, and makes it once."""
    raise NotImplementedError
