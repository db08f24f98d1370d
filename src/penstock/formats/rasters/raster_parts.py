"""One raster as part of a source: its tiles in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.headers import UnreadableImage
from penstock.codecs.resizing import resized
from penstock.formats.paths import origin_of
from penstock.formats.rasters.raster_files import RasterFile, read_tile, stream_tiles
from penstock.formats.rasters.raster_pixels import DamagedTile, TilePixels, to_rgb, valid_pixels
from penstock.formats.rasters.raster_windows import Handles
from penstock.formats.rasters.tile_boxes import TileBoxes
from penstock.geometry import TileGrid, Window
from penstock.samples import Origin, Raw, Sample, Segment


@dataclass(frozen=True, eq=False)
class RasterPart(Segment):
    """The tiles of one raster; `numbers` are those that are samples, as the grid counts them.

    `size` is the width and height of a sample: that of a tile, or of the resolution that it is brought to.
    """

    key: str
    group: str
    split: str | None
    raster: RasterFile
    grid: TileGrid
    numbers: NDArray[np.int64]
    boxes: TileBoxes
    has_boxes: bool
    handles: Handles
    size: tuple[int, int]

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def expected(self) -> int:
        return len(self.numbers)

    @property
    def label_counts(self) -> dict[int, int]:
        known = self.boxes.labels[self.boxes.labels >= 0]
        return {int(label): int(count) for label, count in zip(*np.unique(known, return_counts=True), strict=True)}

    def guard(self, position: int) -> int:
        """How many tiles to leave out from a position on, so that no pixel is on both sides of it."""
        if not 0 < position < len(self.numbers):
            return 0
        number = int(self.numbers[position])
        after = number + self.grid.guard(number)
        return int((self.numbers[position:] < after).sum())

    def origin(self) -> Origin:
        return origin_of(self.raster.path)

    def stamp(self) -> bytes:
        """Bytes that change when the annotations, the tiles or the pixel rules do."""
        size = (self.size,) if self._is_resized else ()
        settings = repr((self.grid, self.raster.rules, self.group, self.split, *size)).encode()
        dealt = (self.numbers, self.boxes.starts, self.boxes.boxes, self.boxes.labels)
        return settings + b"".join(array.tobytes() for array in dealt)

    def window(self, index: int) -> Window:
        """Where tile `index` of this part lies in its raster."""
        return self.grid.window(int(self.numbers[index]))

    def tile_key(self, index: int) -> str:
        window = self.window(index)
        return f"{self.key}#{window.x}_{window.y}"

    def read(self, index: int) -> Raw:
        """One tile by itself."""
        return Raw(index, read_tile(self.handles, self.raster, self.window(index)))

    def stream(self, start: int = 0) -> Iterator[Raw]:
        tiles = stream_tiles(self.handles, self.raster, self.grid, self.numbers[start:])
        for index, pixels in enumerate(tiles, start=start):
            yield Raw(index, pixels)

    def decode(self, raw: Raw) -> Sample:
        if isinstance(raw.data, DamagedTile):
            raise UnreadableImage(raw.data.reason)
        image = to_rgb(raw.data, self.raster.rules)
        shown = resized(image, *self.size) if self._is_resized else image
        return {"image": shown, **self.annotations(raw.index)}

    @property
    def _is_resized(self) -> bool:
        return self.size != (self.grid.tile_width, self.grid.tile_height)

    @property
    def _tile_px_of_one(self) -> tuple[float, float]:
        """Pixels of the raster for each of a sample, along both axes."""
        return self.grid.tile_width / self.size[0], self.grid.tile_height / self.size[1]

    def annotations(self, index: int) -> Sample:
        window = self.window(index)
        sample: Sample = {
            "window": np.array(window, np.int32),
            "transform": np.array(self.raster.tile_transform(window, *self._tile_px_of_one)),
            "crs": self.raster.crs,
            "key": self.tile_key(index),
            "group": self.group,
        }
        if self.split is not None:
            sample["split"] = self.split
        if self.has_boxes:
            boxes, sample["box_label"] = self.boxes.of(int(self.numbers[index]))
            sample["boxes"] = boxes / np.array(2 * self._tile_px_of_one, np.float32) if self._is_resized else boxes
        return sample


@dataclass(frozen=True)
class UnreadablePart(Segment):
    """A raster that cannot be opened: one sample, which says why when it is read."""

    key: str
    group: str
    split: str | None
    path: Path
    reason: str

    def __len__(self) -> int:
        return 1

    @property
    def expected(self) -> int:
        return 1

    @property
    def label_counts(self) -> dict[int, int]:
        return {}

    def origin(self) -> Origin:
        return origin_of(self.path)

    def tile_key(self, index: int) -> str:
        return self.key

    def read(self, index: int) -> Raw:
        raise UnreadableImage(self.reason)

    def stream(self, start: int = 0) -> Iterator[Raw]:
        return iter([Raw(0, DamagedTile(self.reason))][start:])

    def decode(self, raw: Raw) -> Sample:
        raise UnreadableImage(self.reason)

    def annotations(self, index: int) -> Sample:
        return {"key": self.key, "group": self.group, **({} if self.split is None else {"split": self.split})}


def tiles_with_data(handles: Handles, raster: RasterFile, grid: TileGrid) -> NDArray[np.bool_]:
    """Whether each tile has any pixel with data, found by looking at every pixel once.

    A tile that cannot be read counts as one with data: reading it says what is wrong.
    """
    found = np.ones(len(grid), bool)
    if raster.rules.may_lack_data:
        for number, tile in enumerate(stream_tiles(handles, raster, grid, np.arange(len(grid)))):
            if isinstance(tile, TilePixels):
                valid = valid_pixels(tile, raster.rules)
                found[number] = valid is None or bool(valid.any())
    return found
