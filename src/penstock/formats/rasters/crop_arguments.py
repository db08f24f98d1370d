"""What `split_raster` was given: by the names and places of DeepForest's versions, and which rows are about the raster.

| called as                                                    | by                                       |
|--------------------------------------------------------------|------------------------------------------|
| (raster, annotations, patch_size, patch_overlap, save_dir)   | Penstock                                 |
| (raster, annotations, folder, size, overlap)                 | DeepForest's page on version 0.x         |
| (annotations_file, path_to_raster), and the rest by name     | DeepForest 0.3 to 2.1                    |
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from penstock.codecs.map_files import check_drivers
from penstock.errors import DataError, OptionError, Problem, nearest
from penstock.formats.boxes.annotation_files import read_rows
from penstock.formats.boxes.rows import ImageName, Rows
from penstock.formats.paths import PathLike
from penstock.formats.rasters.rasters import RASTER_ENDINGS, Rasters
from penstock.formats.reading import ReadingOptions, parse_classes

_PLACES = ("patch_size", "patch_overlap", "save_dir", "allow_empty")
_OLD_PLACES = ("save_dir", "patch_size", "patch_overlap", "allow_empty")
# Options of Rasters that have another name here.
_OTHER_NAMES = {
    "tile_px": "patch_size",
    "overlap": "patch_overlap",
    "boxes": "annotations",
    "rasters": "raster",
    "images": "root_dir",
}


@dataclass(frozen=True)
class CropArguments:
    """How crops are cut and where they are written, and what of."""

    patch_size: int = 400
    patch_overlap: float = 0.05
    save_dir: PathLike = "."
    allow_empty: bool = False
    raster: Path = Path()
    annotations: Any = None


DEFAULTS = CropArguments()


def one_name(name: str, value: Any, other_name: str, other: Any) -> Any:
    """The value of an argument that has two names, of which one may be used."""
    if value is not None and other is not None:
        raise OptionError(f"split_raster: {name} and {other_name} are the same argument. Pass one of them.")
    return other if value is None else value


def read_arguments(
    *,
    raster: Any,
    annotations: Any,
    places: Sequence[Any],
    keywords: CropArguments,
    base_dir: PathLike | None,
    root_dir: PathLike | None,
) -> CropArguments:
    """What was given by name and by place, as one; `places` are what follows the raster and its annotations."""
    raster, annotations = _in_order(raster, annotations)
    given = _with_places(keywords, places)
    if base_dir is not None:
        if given.save_dir not in (DEFAULTS.save_dir, base_dir):
            raise OptionError("split_raster: base_dir and save_dir are the same argument. Pass one of them.")
        given = replace(given, save_dir=base_dir)
    _check_types(given)
    return replace(
        given, raster=_looked_for(Path(raster), root_dir), annotations=_annotations_in(annotations, root_dir)
    )


def _in_order(raster: Any, annotations: Any) -> tuple[Any, Any]:
    """Raster and annotations; DeepForest takes them the other way round."""
    if _names_raster(annotations) and not _names_raster(raster):
        raster, annotations = annotations, raster
    if raster is None:
        raise OptionError("split_raster needs a raster: pass its path as the first argument, or as path_to_raster.")
    if not isinstance(raster, str | os.PathLike):
        kind = type(raster).__name__
        raise OptionError(f"split_raster: the raster must be a path, not {kind}. Save an array as an image first.")
    return raster, annotations


def _names_raster(given: Any) -> bool:
    return isinstance(given, str | os.PathLike) and Path(given).suffix.lower() in RASTER_ENDINGS


def _with_places(keywords: CropArguments, places: Sequence[Any]) -> CropArguments:
    if not places:
        return keywords
    if not isinstance(places[0], str | os.PathLike | int | float) or isinstance(places[0], bool):
        raise OptionError(
            f"split_raster: the third argument is {type(places[0]).__name__}; it must be the patch size or a folder. "
            "Pass root_dir, patch_size, save_dir and the rest by name; an array (numpy_image) must be saved first."
        )
    names = _PLACES if isinstance(places[0], int | float) else _OLD_PLACES
    if len(places) > len(names):
        raise OptionError(f"split_raster takes at most {len(names) + 2} arguments by place. Pass the rest by name.")
    by_place = dict(zip(names, places, strict=False))
    for name in by_place:
        if getattr(keywords, name) != getattr(DEFAULTS, name):
            raise OptionError(f"split_raster: {name} is given by place ({by_place[name]!r}) and by name.")
    return replace(keywords, **by_place)


def _check_types(given: CropArguments) -> None:
    expected: dict[str, Any] = {
        "patch_size": (int, "a whole number of pixels"),
        "patch_overlap": (float | int, "a fraction, such as 0.05"),
        "save_dir": (str | os.PathLike, "a folder"),
        "allow_empty": (bool, "True or False"),
    }
    for name, (kind, words) in expected.items():
        value = getattr(given, name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise OptionError(f"split_raster: {name}={value!r} must be {words}.")


def _looked_for(path: Path, root_dir: PathLike | None) -> Path:
    """A file as it was named, or below `root_dir` if it is only there."""
    if root_dir is None:
        return path
    if not Path(root_dir).is_dir():
        raise DataError([Problem(os.fspath(root_dir), None, "no such folder", "root_dir is the folder of the raster")])
    return path if path.exists() or not (Path(root_dir) / path).exists() else Path(root_dir) / path


def _annotations_in(annotations: Any, root_dir: PathLike | None) -> Any:
    is_path = isinstance(annotations, str | os.PathLike)
    return _looked_for(Path(annotations), root_dir) if is_path else annotations


def checked_options(options: dict[str, Any]) -> dict[str, Any]:
    """Options of `Rasters` that were passed on; others are refused by name."""
    if "numpy_image" in options:
        raise OptionError("split_raster reads files: save numpy_image as an image, and pass its path.")
    legal = [name for name in inspect.signature(Rasters).parameters if name not in _OTHER_NAMES]
    own = [field.name for field in fields(CropArguments)]
    for name in options:
        if name in _OTHER_NAMES:
            raise OptionError(f"split_raster has no option {name!r}; here it is {_OTHER_NAMES[name]!r}.")
        if name not in legal:
            raise OptionError(f"split_raster has no option {name!r}.{nearest(name, [*own, *legal])}")
    return options


def rows_about(raster: Path, annotations: Any, image_name: str | None, options: dict[str, Any]) -> Rows:
    """Annotations with the rows about a raster attached to its file; an error if there are none."""
    rows = read_rows(
        annotations,
        ReadingOptions(
            files=(raster,),
            classes=parse_classes(options.get("classes")),
            point_buffer=options.get("point_buffer"),
            group_column=options.get("group_from") if "{" not in (options.get("group_from") or "") else None,
            split_column=options.get("split_from"),
            ignore_others=True,
            allow_drivers=check_drivers(options.get("allow_drivers")),
        ),
    )
    chosen = _chosen_names(rows, raster, image_name)
    images = [
        # A name that nothing is called: those rows are about other images, and ignored.
        image._replace(file=raster) if _written(image) in chosen else ImageName("", image.folder)
        for image in rows.images
    ]
    return replace(rows, images=tuple(images))


def _written(image: ImageName) -> str:
    """How an annotation names its image, without folders."""
    name = image.name or (image.file.name if image.file is not None else image.stem)
    return name.replace("\\", "/").rsplit("/", 1)[-1]


def _chosen_names(rows: Rows, raster: Path, image_name: str | None) -> set[str]:
    """The name that means the raster: the one asked for, its own, or the only one with its stem."""
    names = list(dict.fromkeys(_written(image) for image in rows.images))
    wanted = image_name if image_name is not None else raster.name
    if wanted in names:
        return {wanted}
    same_stem = [name for name in names if Path(name).stem == Path(wanted).stem]
    if len(same_stem) == 1 and image_name is None:
        return set(same_stem)
    if len(same_stem) > 1 and image_name is None:
        what = f"the raster is {wanted}, and the annotations name {' and '.join(same_stem)}"
        raise DataError([Problem(rows.tables[0], None, what, "Say which with image_name")])
    raise DataError([_none_about(rows.tables[0], wanted, names)])


def _none_about(table: str, wanted: str, names: Sequence[str]) -> Problem:
    shown = ", ".join(repr(name) for name in names[:3]) + (f" … ({len(names):,} names)" if len(names) > 3 else "")
    found = f"the names there are {shown}" if names else "it names no image"
    remedy = f"Rename the images in the annotations, or pass image_name.{nearest(wanted, names)}"
    return Problem(table, None, f"no row is about {wanted!r}: {found}", remedy)
