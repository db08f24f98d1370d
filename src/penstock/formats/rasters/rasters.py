"""Rasters of any size, cut into overlapping tiles that keep their boxes and their place on the map."""

from __future__ import annotations

import inspect
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, OptionError, Problem
from penstock.formats.paths import IMAGE_ENDINGS, PathLike, expand, files_below
from penstock.formats.patterns import NamePattern
from penstock.formats.provenance import provenance
from penstock.formats.rasters.raster_annotations import RasterAnnotations, TileOptions
from penstock.formats.rasters.raster_files import RasterFile, describe_raster
from penstock.formats.rasters.raster_options import PixelOptions
from penstock.formats.rasters.raster_parts import RasterPart, UnreadablePart, tiles_with_data
from penstock.formats.rasters.raster_windows import Handles
from penstock.samples import Field, Origin, Raw, Sample, Schema, Store, checked_index
from penstock.storage.locations import readable_name, refuses_urls

RASTER_ENDINGS = IMAGE_ENDINGS | {".jp2", ".img"}

_IMAGE = Field("image", "image")
_BOXES = (Field("boxes", "boxes"), Field("box_label", "labels", "int64"))
_POSITION = (
    Field("window", "array", "int32", (4,)),
    Field("transform", "array", "float64", (6,)),
    Field("crs", "text"),
)


class _Place(NamedTuple):
    """Where the tiles of a raster belong: the start of their keys, their group and their split."""

    key: str
    group: str
    split: str | None


class Rasters(Store):
    """Images or GeoTIFFs of any size as tiles: image, window (x y width height), transform, crs, and boxes if given.

    A box goes to every tile that keeps more than `min_kept` of its area; one that no tile keeps goes to the tile
    that holds most of it (`lost_boxes="assign"`), is left out ("drop") or becomes a problem ("error").
    With `gsd`, metres in a pixel, rasters of any resolution give tiles of that one.
    `group_from` is a pattern for file names, or a column of the annotations; otherwise each raster is a group.
    `split_from` is a column of the annotations that names the split of each raster.
    `allow_drivers` names drivers of GDAL, such as "VRT", that may open files that are no GeoTIFF, JPEG, JPEG 2000, PNG,
    WebP, BMP or GIF; other files that they name are then read too.
    How pixels become RGB is said in the table of `penstock.formats.rasters.raster_pixels`.
    """

    @refuses_urls()
    def __init__(
        self,
        rasters: PathLike | Sequence[PathLike],
        *,
        boxes: Any = None,
        tile_px: int = 400,
        overlap: float = 0.05,
        gsd: float | None = None,
        min_kept: float = 0.5,
        lost_boxes: str = "assign",
        bands: int | str | Sequence[int] | None = None,
        scale: str | tuple[float, float] = "auto",
        nodata: float | str | None = None,
        skip_nodata: bool = False,
        classes: PathLike | Sequence[str] | None = None,
        point_buffer: float | str | None = None,
        clip_boxes: bool = False,
        group_from: str | None = None,
        split_from: str | None = None,
        ignore_other_images: bool = False,
        allow_drivers: str | Sequence[str] = (),
    ) -> None:
        if boxes is None:
            _refuse_unused(
                {"min_kept": min_kept, "lost_boxes": lost_boxes, "classes": classes, "point_buffer": point_buffer}
                | {"clip_boxes": clip_boxes, "split_from": split_from, "ignore_other_images": ignore_other_images}
            )
        self.tile_options = TileOptions(tile_px, overlap, min_kept, lost_boxes, skip_nodata, gsd)
        self.pixel_options = PixelOptions.of(bands, scale, nodata, allow_drivers)
        by_column = boxes is not None and group_from is not None and "{" not in group_from
        groups = NamePattern(group_from) if group_from is not None and not by_column else None
        files = raster_paths(rasters)
        names = _names(files)
        annotations = RasterAnnotations.read(
            boxes,
            files,
            classes=classes,
            point_buffer=point_buffer,
            clip_boxes=clip_boxes,
            group_column=group_from if by_column else None,
            split_column=split_from,
            ignore_others=ignore_other_images,
            allow_drivers=self.pixel_options.allow_drivers,
        )
        self._box_count = annotations.box_count
        self._handles = Handles(allow_drivers=self.pixel_options.allow_drivers)
        made = [self._made(file, _place(file, names[file], annotations, groups), annotations) for file in files]
        self._parts = tuple(part for part, _ in made if part is not None)
        problems = [problem for _, problem in made if problem is not None]
        self._starts = np.cumsum([0] + [len(part) for part in self.parts])
        self._schema = Schema((_IMAGE, *(_BOXES if annotations.given else ()), *_POSITION), annotations.classes)
        problems += _unfit_names(files, groups)
        problems += _without(annotations.problems(), problems)
        if lost_boxes == "error":
            problems += self._lost_problems(annotations)
        self._problems = tuple(problems)
        self._given = provenance(
            rasters=rasters,
            boxes=boxes,
            tile_px=tile_px,
            overlap=overlap,
            **({} if gsd is None else {"gsd": gsd}),
            min_kept=min_kept,
            lost_boxes=lost_boxes,
            bands=bands,
            scale=scale,
            nodata=nodata,
            skip_nodata=skip_nodata,
            classes=classes,
            point_buffer=point_buffer,
            clip_boxes=clip_boxes,
            group_from=group_from,
            split_from=split_from,
            ignore_other_images=ignore_other_images,
            **({"allow_drivers": self.pixel_options.allow_drivers} if allow_drivers else {}),
        )

    def _made(
        self, file: Path, place: _Place, annotations: RasterAnnotations
    ) -> tuple[RasterPart | UnreadablePart | None, Problem | None]:
        """One raster as a part, and what is wrong with it; no part where the user must decide something first."""
        raster, problem = describe_raster(file, self.pixel_options)
        ratio = None if raster is None else self.tile_options.ratio(raster)
        if raster is not None and ratio is None:
            what = f"it is on no map, so that it cannot be brought to gsd={self.tile_options.gsd:g}"
            return None, Problem(file.as_posix(), None, what, "Leave it out, or pack it apart and without gsd")
        if raster is not None and ratio is not None:
            return self._part(raster, place, annotations, ratio), problem
        if problem is not None and problem.unreadable:
            return UnreadablePart(*place, file, problem.what), problem
        return None, problem

    def _part(self, raster: RasterFile, place: _Place, annotations: RasterAnnotations, ratio: float) -> RasterPart:
        options = self.tile_options
        grid = options.grid(raster.width, raster.height, ratio)
        dealt = annotations.deal(raster.path, grid, options)
        wanted = np.ones(len(grid), bool)
        if options.skip_nodata:
            wanted = tiles_with_data(self._handles, raster, grid) | (dealt.counts > 0)
        return RasterPart(
            *place,
            raster=raster,
            grid=grid,
            numbers=np.flatnonzero(wanted),
            boxes=dealt,
            has_boxes=annotations.given,
            handles=self._handles,
            size=(max(1, round(grid.tile_width / ratio)), max(1, round(grid.tile_height / ratio))),
        )

    @property
    def parts(self) -> tuple[RasterPart | UnreadablePart, ...]:
        return self._parts

    @property
    def _readable(self) -> list[RasterPart]:
        return [part for part in self.parts if isinstance(part, RasterPart)]

    def _lost_problems(self, annotations: RasterAnnotations) -> list[Problem]:
        kept = self.tile_options.min_kept
        return [
            problem
            for part in self._readable
            for problem in annotations.lost_problems(part.raster.path, part.boxes, kept)
        ]

    def __len__(self) -> int:
        return int(self._starts[-1])

    def read(self, index: int) -> Raw:
        part, inner = self._locate(index)
        return Raw(index, part.read(inner).data)

    def decode(self, raw: Raw) -> Sample:
        part, inner = self._locate(raw.index)
        return part.decode(Raw(inner, raw.data))

    def annotations(self, index: int) -> Sample:
        """Every field of a tile but its pixels."""
        part, inner = self._locate(index)
        return part.annotations(inner)

    def origin(self, index: int) -> Origin:
        return self._locate(index)[0].origin()

    def _locate(self, index: int) -> tuple[RasterPart | UnreadablePart, int]:
        position = checked_index(index, len(self))
        which = int(np.searchsorted(self._starts, position, side="right")) - 1
        return self.parts[which], position - int(self._starts[which])

    def column(self, name: str) -> NDArray[Any]:
        """key, group, or split (where the annotations have one) of every tile."""
        if name == "key":
            return np.array([part.tile_key(index) for part in self.parts for index in range(len(part))], object)
        if name == "group" or (name == "split" and any(part.split is not None for part in self.parts)):
            values = np.array([getattr(part, name) or "" for part in self.parts], object)
            return np.repeat(values, [len(part) for part in self.parts])
        raise KeyError(f"no column {name!r}; there are key, group, and split where the annotations have one.")

    def counts(self) -> dict[str, int]:
        """What there is, for whoever looks; a box may be on several tiles, and is counted once."""
        found = {"rasters": len(self.parts)}
        return found if self._box_count is None else {**found, "boxes": self._box_count}

    def problems(self) -> list[Problem]:
        """Everything that is wrong with the rasters and their annotations."""
        return list(self._problems)

    @property
    def lost_boxes_count(self) -> int:
        """How many boxes no tile keeps enough of."""
        return sum(len(part.boxes.lost) for part in self._readable)

    def made_from(self) -> dict[str, Any]:
        return dict(self._given)

    def notes(self) -> dict[str, Any]:
        """What was decided on the way, for whoever asks the pack later; nothing that was not needed."""
        lost = {"assign": "boxes_assigned", "drop": "boxes_dropped", "error": "boxes_lost"}
        scaled = sum(part.raster.rules.value_range is not None for part in self._readable)
        left_out = sum(len(part.grid) - len(part) for part in self._readable)
        found: dict[str, Any] = {
            lost[self.tile_options.lost_boxes]: self.lost_boxes_count,
            "nodata_tiles_left_out": left_out,
            "scaled_rasters": scaled,
            "scale": str(self.pixel_options.scale) if scaled else "",
        }
        return {name: value for name, value in found.items() if value}


def raster_paths(rasters: PathLike | Sequence[PathLike]) -> list[Path]:
    """The files that a path, pattern, folder or list means."""
    files: list[Path] = []
    for path in expand(rasters):
        found = files_below(path, RASTER_ENDINGS) if path.is_dir() else [path]
        if not found:
            endings = " ".join(sorted(RASTER_ENDINGS))
            raise DataError([Problem(path.as_posix(), None, f"no rasters in this folder ({endings})", "Name a file")])
        files += found
    if not files:
        raise DataError([Problem("rasters", None, "the list of rasters is empty", "Name at least one")])
    return list(dict.fromkeys(files))


def _names(files: Sequence[Path]) -> dict[Path, str]:
    """The name of each file; where two have the same, with as many folders as tell all of them apart."""
    if max(Counter(file.name for file in files).values()) == 1:
        return {file: readable_name(file.name) for file in files}
    shared = Path(os.path.commonpath([file.parent.absolute() for file in files]))
    return {file: readable_name(file.absolute().relative_to(shared).as_posix()) for file in files}


def _place(file: Path, name: str, annotations: RasterAnnotations, groups: NamePattern | None) -> _Place:
    group = groups.value(file.name) if groups is not None else annotations.group(file)
    return _Place(name, group or name, annotations.split(file))


def _unfit_names(files: Sequence[Path], groups: NamePattern | None) -> list[Problem]:
    return [
        Problem(file.as_posix(), None, f"its name does not fit group_from={groups.text!r}", "Rename it or the pattern")
        for file in files
        if groups is not None and not groups.value(file.name)
    ]


def _refuse_unused(given: Mapping[str, object]) -> None:
    """Options about boxes, where there are none."""
    usual = inspect.signature(Rasters.__init__).parameters
    used = [name for name, value in given.items() if value != usual[name].default]
    if used:
        raise OptionError(
            f"{', '.join(used)}: this is about boxes, and there are none. Pass boxes too, or leave it out."
        )


def _without(problems: Sequence[Problem], known: Sequence[Problem]) -> list[Problem]:
    """Problems but those of whole files that are known to have one: an unreadable raster is said once."""
    files = {Path(problem.file).absolute() for problem in known}
    return [problem for problem in problems if problem.row is not None or Path(problem.file).absolute() not in files]
