"""Groups: what must stay together when samples are split; the image itself unless something says otherwise."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import Problem, nearest
from penstock.formats.patterns import NamePattern


def is_pattern(group_from: str | None) -> bool:
    """Whether `group_from` is a name pattern such as '{site}_*'; otherwise it is a column of the table."""
    return group_from is not None and "{" in group_from


def groups_of(
    keys: Sequence[str], files: Sequence[str], given: Sequence[str] | None, group_from: str | None
) -> tuple[tuple[str, ...], list[Problem]]:
    """The group of each image, and a problem for each name that does not fit the pattern.

    A pattern with a slash is held against the key (the relative path), one without against the file's name.
    """
    if group_from is None or not is_pattern(group_from):
        stated = given if given is not None else [""] * len(keys)
        return tuple(group or key for group, key in zip(stated, keys, strict=True)), []
    pattern = NamePattern(group_from)
    names = keys if "/" in group_from else [key.rsplit("/", 1)[-1] for key in keys]
    values = [pattern.value(name) for name in names]
    problems = [
        Problem(file, None, f"its name does not fit the pattern {group_from!r}", "Rename it, or change group_from")
        for file, value in zip(files, values, strict=True)
        if value is None
    ]
    return tuple(value or key for value, key in zip(values, keys, strict=True)), problems


# As split_raster writes crops, here and in DeepForest: <raster>_<number>.png beside <raster>.csv.
_CROP = re.compile(r"(?P<raster>.+)_\d+\.png", re.IGNORECASE)


def crop_rasters(keys: Sequence[str], files: Sequence[Path]) -> dict[int, str]:
    """The raster that a file was cropped from, by its place in the list; crops of one overlap, so they are a group.

    It is named by the key of the crop, not by its file: the same data give the same split wherever they are.
    """
    tables: dict[Path, bool] = {}
    found = {}
    for place, (key, file) in enumerate(zip(keys, files, strict=True)):
        crop = _CROP.fullmatch(file.name)
        if crop is None:
            continue
        raster = file.with_name(crop["raster"])
        if raster not in tables:
            tables[raster] = raster.with_name(f"{raster.name}.csv").is_file()
        if tables[raster]:
            found[place] = key.rsplit("_", 1)[0]
    return found


def text_column(texts: Mapping[str, Sequence[str] | None], name: str) -> NDArray[Any]:
    """One of the texts that a source knows of every sample, or KeyError with those that there are."""
    found = texts.get(name)
    if found is None:
        there = [each for each, values in texts.items() if values is not None]
        raise KeyError(f"no column {name!r}; there are {', '.join(there)}.{nearest(name, there)}")
    return np.array(found, object)
