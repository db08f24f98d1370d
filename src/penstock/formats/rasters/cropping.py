"""Crops of a raster as files, with the table of their boxes, for people who want files instead of a pack."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.codecs.images import encode_image
from penstock.errors import DataError, OptionError, Problem
from penstock.formats.paths import PathLike
from penstock.formats.rasters.crop_arguments import (
    DEFAULTS,
    CropArguments,
    checked_options,
    one_name,
    read_arguments,
    rows_about,
)
from penstock.formats.rasters.raster_parts import RasterPart
from penstock.formats.rasters.rasters import Rasters
from penstock.geometry import as_boxes
from penstock.problems import raise_problems
from penstock.results import BOX_COLUMNS, box_frame
from penstock.storage.locations import refuses_urls
from penstock.storage.whole_files import write_whole
from penstock.wording import counted

if TYPE_CHECKING:
    import pandas as pd


@refuses_urls()
def split_raster(
    raster: Any = None,
    annotations: Any = None,
    *places: Any,
    patch_size: int = DEFAULTS.patch_size,
    patch_overlap: float = DEFAULTS.patch_overlap,
    save_dir: PathLike = DEFAULTS.save_dir,
    allow_empty: bool = DEFAULTS.allow_empty,
    image_name: str | None = None,
    overwrite: bool = False,
    path_to_raster: Any = None,
    annotations_file: Any = None,
    root_dir: PathLike | None = None,
    base_dir: PathLike | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Write crops of a raster as `<stem>_<number>.png` and their boxes as `<stem>.csv`, and return that table.

    Names, places and numbers are those of DeepForest: `path_to_raster` is raster, `annotations_file` annotations,
    `base_dir` save_dir; `root_dir` is a folder to look for both files in. After the raster and the annotations (in
    either order) may follow patch_size, patch_overlap, save_dir, or, as in its 0.x, a folder, a size and an overlap.
    Crops are numbered column by column, as DeepForest does.

    Rows of other images are left out. `image_name` says which name in the annotations is this raster; by default its
    file name, or a name that differs from it only in the ending. It is an error if no row is about the raster.
    Crops without boxes are written only with `allow_empty`: as a row 0,0,0,0 with the first class. Without
    annotations all crops are written, no table is, and the one returned has no boxes: what was not looked at is not
    a negative. Further options are those of `Rasters`: min_kept, lost_boxes, bands, scale …
    """
    given = read_arguments(
        raster=one_name("raster", raster, "path_to_raster", path_to_raster),
        annotations=one_name("annotations", annotations, "annotations_file", annotations_file),
        places=places,
        keywords=CropArguments(patch_size, patch_overlap, save_dir, allow_empty),
        base_dir=base_dir,
        root_dir=root_dir,
    )
    options = checked_options(options)
    file = _one_file(given.raster)
    labelled = given.annotations is not None
    if labelled:
        options = {"ignore_other_images": True, **options}
    boxes = rows_about(file, given.annotations, image_name, options) if labelled else None
    source = Rasters(file, boxes=boxes, tile_px=given.patch_size, overlap=given.patch_overlap, **options)
    raise_problems(source.problems())
    part = next(part for part in source.parts if isinstance(part, RasterPart))
    folder = Path(given.save_dir)
    stem = Path(image_name).stem if image_name is not None else file.stem
    names = _names(part, stem, only_with_boxes=labelled and not given.allow_empty)
    if not names:
        raise DataError([_no_crop(file, given.annotations)])
    outputs = [*names.values(), *([f"{stem}.csv"] if labelled else [])]
    _check_outputs([folder / name for name in outputs], [file, given.annotations], overwrite)
    folder.mkdir(parents=True, exist_ok=True)
    _write_crops(part, folder, names)
    if not labelled:
        return _names_only(list(names.values()))
    table = _table(part, names, source.classes)
    write_whole(folder / f"{stem}.csv", table.to_csv(index=False).encode())
    return table


def _names(part: RasterPart, stem: str, *, only_with_boxes: bool) -> dict[int, str]:
    """The file of each tile that is written, by its number in the raster, in the order of DeepForest's numbers.

    It counts columns of tiles from the left, each from the top; a raster here is read row by row.
    """
    chosen = part.numbers[part.boxes.counts[part.numbers] > 0] if only_with_boxes else part.numbers
    row, column = np.divmod(chosen, len(part.grid.columns))
    numbers = column * len(part.grid.rows) + row
    return {int(chosen[place]): f"{stem}_{numbers[place]}.png" for place in np.argsort(numbers)}


def _no_crop(raster: Path, annotations: Any) -> Problem:
    place = os.fspath(annotations) if isinstance(annotations, str | os.PathLike) else "annotations"
    what = f"the rows about {raster.name} have no box that a crop keeps"
    return Problem(place, None, what, "Pass allow_empty=True to write crops without boxes")


def _write_crops(part: RasterPart, folder: Path, names: dict[int, str]) -> None:
    for raw in part.stream():
        name = names.get(int(part.numbers[raw.index]))
        if name is not None:
            write_whole(folder / name, encode_image(part.decode(raw)["image"], "png"))


def _one_file(path: Path) -> Path:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "no such file"
        raise DataError([Problem(path.as_posix(), None, what, "Name one raster; ps.Rasters takes many")])
    return path


def _check_outputs(outputs: Sequence[Path], inputs: Sequence[Any], overwrite: bool) -> None:
    """Nothing that was read is ever written to, and nothing else is replaced unasked."""
    sources = {Path(given).resolve() for given in inputs if isinstance(given, str | os.PathLike)}
    for path in outputs:
        if path.resolve() in sources:
            raise OptionError(f"{path} is what the crops are made from. Choose another save_dir.")
    there = [path for path in outputs if path.exists()]
    if there and not overwrite:
        raise OptionError(
            f"{len(there):,} of {counted(len(outputs), 'file', 'is')} already there, such as {there[0]}. "
            "Choose another save_dir or pass overwrite=True."
        )


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
