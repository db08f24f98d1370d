"""From what a user gives as data to a source: for prediction any images, for evaluation data with labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.errors import RecipeError
from penstock.formats.rasters.rasters import raster_paths
from penstock.opening import kind_of
from penstock.opening import open as open_any
from penstock.prediction.image_arrays import ImageArrays, are_in_memory, image_arrays
from penstock.prediction.image_files import image_files
from penstock.samples import Source, Store, as_store
from penstock.training.data_splits import training_data
from penstock.training.options import DataOptions

# What a folder or file may be taken for that is, for prediction, simply images.
SIMPLY_IMAGES = ("Images", "Boxes", "Rasters", "")
TABLES = (".csv", ".tsv", ".txt", ".json", ".xml")


def source_for_prediction(data: Any) -> Store:
    """A Source as it is; images in memory; files, folders, patterns and lists of them; else as `penstock.open` does."""
    if isinstance(data, Source):
        return as_store(data)
    if are_in_memory(data):
        return image_arrays(data)
    if isinstance(data, Sequence) and not isinstance(data, str):
        return image_files(data)
    if not isinstance(data, (str, os.PathLike)):
        what = "a path, a list of paths, an array H×W×3 of uint8, an image of Pillow, a list of these, or a Source"
        raise RecipeError(f"data must be {what}, not {type(data).__name__}.")
    if _is_simply_images(data):
        return image_files(data)
    source: Store = open_any(data)
    return source


def files_or_source(data: Any) -> list[Path] | ImageArrays | Store:
    """Image files and rasters by their paths, as they are given; images in memory; all else as a Source."""
    if isinstance(data, Source):
        return as_store(data)
    if are_in_memory(data):
        return image_arrays(data)
    if isinstance(data, Sequence) and not isinstance(data, str):
        return raster_paths(data)
    source = source_for_prediction(data) if not _is_simply_images(data) else None
    return raster_paths(data) if source is None else source


def _is_simply_images(data: Any) -> bool:
    if not isinstance(data, (str, os.PathLike)):
        return False
    is_missing = not Path(data).exists() and "*" not in os.fspath(data)
    return is_missing or (Path(data).suffix not in TABLES and kind_of(data) in SIMPLY_IMAGES)


def source_for_evaluation(data: Any, split: str | None) -> Store:
    """A Source or what `penstock.open` takes; with `split` that part of it, by the rule of packing."""
    if split is None:
        source: Store = as_store(data) if isinstance(data, Source) else open_any(data)
        return source
    return training_data(data, DataOptions(train=split, val=None)).train
