"""Crops of a raster as files, with the table of their boxes, for people who want files instead of a pack."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.codecs.images import encode_image
from penstock.errors import DataError, Problem, RecipeError
from penstock.geometry import as_boxes
from penstock.results import BOX_COLUMNS, box_frame
from penstock.samples import raise_problems
from penstock.sources.paths import PathLike
from penstock.sources.rasters.raster_parts import RasterPart
from penstock.sources.rasters.rasters import Rasters
from penstock.storage.locations import refuses_urls

if TYPE_CHECKING:
    import pandas as pd


@refuses_urls()
def split_raster(
    raster: PathLike,
    annotations: Any = None,
    patch_size: int = 400,
    patch_overlap: float = 0.05,
    save_dir: PathLike = ".",
    allow_empty: bool = False,
    *,
    overwrite: bool = False,
    **options: Any,
) -> pd.DataFrame:
    """Write crops of a raster as `<stem>_<number>.png` and their boxes as `<stem>.csv`, and return that table.

    Rows of other images are left out. Crops without boxes are written only with `allow_empty`: as a row 0,0,0,0 with
    the first class. Without annotations all crops are written, no table is, and the one returned has no boxes: what
    was not looked at is not a negative. Further options are those of `Rasters`: min_kept, lost_boxes, bands, scale …
    """
    options = {"ignore_other_images": True, **options}
    source = Rasters(_one_file(raster), boxes=annotations, tile_px=patch_size, overlap=patch_overlap, **options)
    raise_problems(source.problems())
    part = next(part for part in source.parts if isinstance(part, RasterPart))
    folder = Path(save_dir)
    stem, labelled = part.raster.path.stem, annotations is not None
    chosen = part.numbers[part.boxes.counts[part.numbers] > 0] if labelled and not allow_empty else part.numbers
    names = {int(number): f"{stem}_{number}.png" for number in chosen}
    outputs = [*names.values(), *([f"{stem}.csv"] if labelled else [])]
    _check_outputs([folder / name for name in outputs], [part.raster.path, annotations], overwrite)
    folder.mkdir(parents=True, exist_ok=True)
    _write_crops(part, folder, names)
    if not labelled:
        return _names_only(list(names.values()))
    table = _table(part, names, source.classes)
    _write_whole(folder / f"{stem}.csv", table.to_csv(index=False).encode())
    return table


def _write_crops(part: RasterPart, folder: Path, names: dict[int, str]) -> None:
    for raw in part.stream():
        name = names.get(int(part.numbers[raw.index]))
        if name is not None:
            _write_whole(folder / name, encode_image(part.decode(raw)["image"], "png"))


def _one_file(raster: PathLike) -> Path:
    path = Path(raster)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "no such file"
        raise DataError([Problem(path.as_posix(), None, what, "Name one raster; ps.Rasters takes many")])
    return path


def _check_outputs(outputs: Sequence[Path], inputs: Sequence[Any], overwrite: bool) -> None:
    """Nothing that was read is ever written to, and nothing else is replaced unasked."""
    sources = {Path(given).resolve() for given in inputs if isinstance(given, str | os.PathLike)}
    for path in outputs:
        if path.resolve() in sources:
            raise RecipeError(f"{path} is what the crops are made from. Choose another save_dir.")
    there = [path for path in outputs if path.exists()]
    if there and not overwrite:
        raise RecipeError(
            f"{len(there):,} of {len(outputs):,} files are already there, such as {there[0]}. "
            "Choose another save_dir or pass overwrite=True."
        )


def _write_whole(path: Path, data: bytes) -> None:
    """Write under another name first, so that a file is there whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise


def _table(part: RasterPart, names: dict[int, str], classes: tuple[str, ...]) -> pd.DataFrame:
    paths: list[str] = []
    boxes = [as_boxes([])]
    labels: list[str] = []
    for number, name in names.items():
        here, numbers = part.boxes.of(number)
        found = [classes[label] for label in numbers]
        if not found:
            here, found = as_boxes([0, 0, 0, 0]), [classes[0] if classes else ""]
        paths += [name] * len(found)
        boxes.append(here)
        labels += found
    return box_frame(paths, np.concatenate(boxes), labels)


def _names_only(names: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({column: list(names) if column == "image_path" else None for column in BOX_COLUMNS})
