"""Penstock: raw images, rasters and videos into packed datasets that feed training at full speed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

AUTO = "auto"

# Where each public name lives. Nothing is imported before it is used: `import penstock` stays instant.
_HOMES = {
    "Boxes": "penstock.sources.boxes",
    "Images": "penstock.sources.images",
    "Rasters": "penstock.sources.rasters",
    "Videos": "penstock.sources.videos",
    "check": "penstock.sources.checking",
    "read_pascal_voc": "penstock.sources.voc",
    "split_raster": "penstock.sources.cropping",
    "Concat": "penstock.samples",
    "Field": "penstock.samples",
    "Raw": "penstock.samples",
    "Schema": "penstock.samples",
    "Source": "penstock.samples",
    "Subset": "penstock.samples",
    "concat": "penstock.samples",
    "Pack": "penstock.packing.reader",
    "PackOptions": "penstock.packing.options",
    "open": "penstock.packing.reader",
    "pack": "penstock.packing.writer",
    "DataError": "penstock.errors",
    "HopError": "penstock.errors",
    "MissingExtra": "penstock.errors",
    "PackError": "penstock.errors",
    "PenstockError": "penstock.errors",
    "Problem": "penstock.errors",
    "RecipeError": "penstock.errors",
}

__all__ = ["AUTO", "__version__", *sorted(_HOMES)]

if TYPE_CHECKING:
    from penstock.errors import DataError, HopError, MissingExtra, PackError, PenstockError, Problem, RecipeError
    from penstock.packing.options import PackOptions
    from penstock.packing.reader import Pack, open
    from penstock.packing.writer import pack
    from penstock.samples import Concat, Field, Raw, Schema, Source, Subset, concat
    from penstock.sources.boxes import Boxes
    from penstock.sources.checking import check
    from penstock.sources.cropping import split_raster
    from penstock.sources.images import Images
    from penstock.sources.rasters import Rasters
    from penstock.sources.videos import Videos
    from penstock.sources.voc import read_pascal_voc


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
