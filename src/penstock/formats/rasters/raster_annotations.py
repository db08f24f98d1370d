"""What the annotations say of each raster: its boxes, group and split, and what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import OptionError, Problem, one_of
from penstock.formats.rasters.raster_files import RasterFile
from penstock.formats.rasters.tile_boxes import TileBoxes
from penstock.geometry import TileGrid
from penstock.results.georeferences import metres_per_pixel, same_resolution

if TYPE_CHECKING:
    from penstock.formats.boxes.annotations import AnnotatedImages

LOST_BOXES = ("assign", "drop", "error")


@dataclass(frozen=True)
class TileOptions:
    """How rasters are cut, and what becomes of boxes that a cut divides."""

    tile_px: int
    overlap: float
    min_kept: float
    lost_boxes: str
    skip_nodata: bool
    gsd: float | None = None

    def __post_init__(self) -> None:
        one_of("lost_boxes", self.lost_boxes, LOST_BOXES)
        if not 0 <= self.min_kept < 1:
            raise OptionError(f"min_kept={self.min_kept} must be a fraction from 0 to below 1, such as 0.5.")
        if self.gsd is not None and (isinstance(self.gsd, bool) or not 0 < self.gsd < math.inf):
            raise OptionError(f"gsd={self.gsd!r} must be metres in a pixel, such as 0.1.")
        self.grid(1, 1)

    def grid(self, width: int, height: int, ratio: float = 1.0) -> TileGrid:
        """The tiles of a raster; `ratio` are its pixels for each of a tile."""
        side = self.tile_px if ratio == 1 else max(1, round(self.tile_px * ratio))
        return TileGrid.over(width, height, side, self.overlap)

    def ratio(self, raster: RasterFile) -> float | None:
        """Pixels of a raster for each of its tiles, so that these have the resolution that is wanted; None where the
        raster is on no map."""
        if self.gsd is None:
            return 1.0
        place = {"x": raster.width / 2, "y": raster.height / 2}
        found = metres_per_pixel(raster.transform, raster.crs, **place)
        if found is None:
            return None
        return 1.0 if same_resolution(self.gsd / found) else self.gsd / found


@dataclass(frozen=True, eq=False)
class RasterAnnotations:
    """The annotations of some rasters, or of none (`annotated` is None) when no boxes were given."""

    annotated: AnnotatedImages | None = None
    _numbers: dict[Path, int] = field(default_factory=dict)

    @classmethod
    def read(cls, boxes: Any, files: Sequence[Path], **options: Any) -> RasterAnnotations:
        if boxes is None:
            return cls()
        from penstock.formats.boxes.annotations import read_annotations

        annotated = read_annotations(boxes, files=files, **options)
        return cls(annotated, {file.absolute(): number for number, file in enumerate(annotated.files)})

    @property
    def given(self) -> bool:
        return self.annotated is not None

    @property
    def classes(self) -> tuple[str, ...]:
        return self.annotated.classes if self.annotated is not None else ()

    @property
    def box_count(self) -> int | None:
        """How many boxes there are; None where none were given."""
        return len(self.annotated.boxes) if self.annotated is not None else None

    def group(self, path: Path) -> str | None:
        return self._text(self.annotated.groups if self.annotated is not None else None, path)

    def split(self, path: Path) -> str | None:
        return self._text(self.annotated.splits if self.annotated is not None else None, path)

    def _text(self, texts: tuple[str, ...] | None, path: Path) -> str | None:
        number = self._number(path)
        return texts[number] or None if texts is not None and number is not None else None

    def _number(self, path: Path) -> int | None:
        return self._numbers.get(path.absolute())

    def deal(self, path: Path, grid: TileGrid, options: TileOptions) -> TileBoxes:
        """The boxes of a raster on its tiles."""
        number = self._number(path)
        if self.annotated is None or number is None:
            return TileBoxes.none(grid)
        return TileBoxes.deal(
            self.annotated.boxes_of(number),
            self.annotated.labels_of(number),
            grid,
            min_kept=options.min_kept,
            assign_lost=options.lost_boxes == "assign",
        )

    def problems(self) -> tuple[Problem, ...]:
        return self.annotated.problems if self.annotated is not None else ()

    def lost_problems(self, path: Path, dealt: TileBoxes, min_kept: float) -> Iterator[Problem]:
        """A problem for each box of a raster that no tile keeps enough of."""
        number = self._number(path)
        if self.annotated is None or number is None:
            return
        for box in self.annotated.starts[number] + dealt.lost:
            yield Problem(
                self.annotated.tables[self.annotated.table_numbers[box]],
                int(self.annotated.rows[box]),
                f"no tile of {path.name} keeps more than {min_kept:g} of this box",
                "Use a larger overlap or tile_px, or lost_boxes='assign'",
            )
