"""Images to predict on: cut into windows, read ahead by threads, at the resolution that the network knows."""

from __future__ import annotations

import math
import os
import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.headers import UnreadableImage, read_file_header
from penstock.codecs.images import decode_image
from penstock.codecs.map_files import gdal, gdal_errors, open_raster
from penstock.codecs.opencv import opencv
from penstock.errors import DataError, HopError, Problem
from penstock.formats.paths import read_bytes
from penstock.formats.rasters.raster_files import RasterFile, Tiles, describe_raster, stream_tiles
from penstock.formats.rasters.raster_options import PixelOptions
from penstock.formats.rasters.raster_pixels import DamagedTile, PixelRules, TilePixels, to_rgb, valid_pixels
from penstock.formats.rasters.raster_windows import Handles
from penstock.geometry import TileGrid
from penstock.geometry.mosaics import WindowGrid, windows
from penstock.results.georeferences import Georeference, same_resolution
from penstock.storage.blocks import Blocks
from penstock.storage.locations import readable_name

# How an image is cut into windows for a network: at its own pixels, or brought to the resolution of the model.
#
# Windows begin at whole strides of the network, as long as pixels are taken as they are; where they are resampled,
# places lie between pixels anyhow.


Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class WindowPlan:
    """The windows of one image in its own pixels, and the side that each has for the network."""

    width: int
    height: int
    grid: WindowGrid
    shown_px: int
    fill: tuple[int, int, int] = (0, 0, 0)  # of what lies beyond the border

    @property
    def factor(self) -> float:
        """Pixels that the network is shown for each of the image."""
        return self.shown_px / self.grid.tile_px

    @property
    def shown_bytes(self) -> int:
        """What a window takes in memory."""
        return 3 * self.shown_px**2

    @cached_property
    def tiles(self) -> TileGrid:
        """The same windows moved back inside of the image, as rasters are read."""
        tile = self.grid.tile_px
        return TileGrid(
            columns=tuple(min(start, max(0, self.width - tile)) for start in self.grid.columns),
            rows=tuple(min(start, max(0, self.height - tile)) for start in self.grid.rows),
            tile_width=min(tile, self.width),
            tile_height=min(tile, self.height),
        )

    def shown(self, number: int, tile: Pixels) -> Pixels:
        """A window as the network is shown it, from the tile that was moved back."""
        row, column = divmod(number, len(self.grid.columns))
        inner = self.tiles.window(number)
        part = tile[self.grid.rows[row] - inner.y :, self.grid.columns[column] - inner.x :]
        side = self.grid.tile_px
        if part.shape[:2] != (side, side):
            part = self._filled(part)
        return part if side == self.shown_px else _resized(part, self.shown_px)

    def _filled(self, part: Pixels) -> Pixels:
        """A part at the border of the image as a whole window."""
        cv2 = opencv()
        down, right = self.grid.tile_px - part.shape[0], self.grid.tile_px - part.shape[1]
        whole: Pixels = cv2.copyMakeBorder(part, 0, down, 0, right, cv2.BORDER_CONSTANT, value=self.fill)
        return whole


def _resized(part: Pixels, side: int) -> Pixels:
    cv2 = opencv()
    how = cv2.INTER_AREA if side < len(part) else cv2.INTER_LINEAR
    resized: Pixels = cv2.resize(part, (side, side), interpolation=how)
    return resized


def window_plan(
    width: int,
    height: int,
    *,
    tile_px: int,
    overlap: float,
    stride: int,
    ratio: float = 1.0,
    fill: tuple[int, int, int] = (0, 0, 0),
) -> WindowPlan:
    """The windows of an image.

    tile_px   side of a window as the network is shown it
    stride    from one place of the network to the next, in pixels that it is shown
    ratio     pixels of the image for each that the network is shown
    """
    ratio = 1.0 if same_resolution(ratio) else ratio
    tile = max(1, round(tile_px * ratio))
    step = stride if ratio == 1 and stride <= tile else 1
    # Up to half of the overlap is given for a whole stride: shorter distances would double the work of long strides.
    distance = max(1, math.floor(tile * (1 - overlap / 2) / step)) * step
    shared = 0.0 if distance == tile else 1 - (distance + 0.5) / tile  # half a pixel, against rounding
    grid = windows(width, height, tile_px=tile, overlap=shared, stride=step)
    return WindowPlan(width, height, grid, tile_px, fill)


# Photos that decode in a moment and take some 200 MB; what is larger is read as a raster.
LARGEST_PHOTO_PX = 1 << 26
SPARSE = 64
RASTERS = (".tif", ".tiff", ".jp2", ".img", ".vrt")


class Shown(NamedTuple):
    """A window as the network is shown it."""

    number: int
    pixels: Pixels


@dataclass(frozen=True)
class Scene:
    """One image or raster: its size, its place on the map, and how its windows are read, in order, by some threads."""

    name: str
    width: int
    height: int
    place: Georeference | None
    is_photo: bool
    read: Callable[[WindowPlan, NDArray[np.int64], int], Iterator[Shown]]
    # One reading has threads of its own; else as many readings as there are threads share the windows.
    reads_in_parallel: bool = False


def open_scene(path: Path, bands: Any, allow_drivers: Sequence[str] = ()) -> Scene:
    """A file as a scene: TIFF and the like as rasters, photos as images."""
    if path.suffix.lower() not in RASTERS and bands is None:
        try:
            header = read_file_header(path)
        except (OSError, UnreadableImage) as error:
            raise HopError("read", str(path), str(error)) from error
        if header.width * header.height <= LARGEST_PHOTO_PX:
            return photo_scene(path)
    raster, problem = describe_raster(path, PixelOptions.of(bands, "auto", None, allow_drivers))
    if raster is None or problem is not None:
        raise DataError([problem or Problem(str(path), None, "it cannot be read", "Copy it again")])
    return raster_scene(raster, tuple(allow_drivers))


def lacks_place(path: Path, allow_drivers: Sequence[str] = ()) -> bool:
    """Whether an image that can be read has no georeference, as far as its header says."""
    if path.suffix.lower() not in RASTERS:
        return True
    try:
        with gdal(), open_raster(path, allow_drivers=allow_drivers) as raster:
            return not raster.crs
    except (OSError, UnreadableImage):
        return False  # whose turn comes, and is an error or skipped
    except gdal_errors():
        return False


def photo_scene(path: Path) -> Scene:
    """An image that is decoded at once, turned as it says."""
    try:
        pixels = decode_image(read_bytes(path))
    except (OSError, UnreadableImage) as error:
        raise HopError("decode", str(path), str(error)) from error
    return image_scene(readable_name(os.fspath(path)), pixels)


def image_scene(name: str, pixels: Pixels) -> Scene:
    """An image in memory."""

    def read(plan: WindowPlan, numbers: NDArray[np.int64], _: int) -> Iterator[Shown]:
        tiles = plan.tiles
        for number in numbers.tolist():
            x, y, width, height = tiles.window(number)
            yield from _worth_a_look(plan, number, pixels[y : y + height, x : x + width])

    return Scene(name, pixels.shape[1], pixels.shape[0], None, True, read)


def raster_scene(raster: RasterFile, allow_drivers: tuple[str, ...] = ()) -> Scene:
    """A raster of any size: every strip is decoded once, a band of rows is in memory."""
    place = Georeference(raster.crs, raster.transform) if raster.crs else None

    def read(plan: WindowPlan, numbers: NDArray[np.int64], threads: int) -> Iterator[Shown]:
        how: Tiles = "shared" if raster.rules.is_rgb else "passing"
        tiles = stream_tiles(Handles(threads, allow_drivers), raster, plan.tiles, numbers, tiles=how)
        memory = Blocks(3 * plan.tiles.tile_height * plan.tiles.tile_width)
        for number, tile in zip(numbers.tolist(), tiles, strict=True):
            if isinstance(tile, DamagedTile):
                raise HopError("read", raster.path.as_posix(), tile.reason)
            image = _image(tile, raster.rules, memory)
            if image is not None:
                yield from _worth_a_look(plan, number, image)

    # Where pixels have to be converted, that takes longer than decoding them, and GDAL does none of it; where nothing
    # has to be decoded, it has no part at all.
    is_parallel = raster.is_geotiff and raster.rules.is_rgb and raster.plain is None
    return Scene(readable_name(os.fspath(raster.path)), raster.width, raster.height, place, False, read, is_parallel)


def _image(tile: TilePixels, rules: PixelRules, memory: Blocks) -> Pixels | None:
    """A tile as RGB, where it lies if that is what is stored; None where it has no data."""
    valid = valid_pixels(tile, rules) if rules.may_lack_data else None
    if valid is not None and not valid.any():
        return None
    if rules.is_rgb and (valid is None or valid.all()):
        return tile.pixels.transpose(1, 2, 0)
    shape = *tile.pixels.shape[1:], 3
    return to_rgb(tile, rules, np.frombuffer(memory.allocate(math.prod(shape)), np.uint8).reshape(shape))


def _worth_a_look(plan: WindowPlan, number: int, tile: Pixels) -> Iterator[Shown]:
    """The window, unless it is of one colour: nothing can be seen there."""
    # A few pixels tell it of nearly every window; only where they are alike all are compared.
    if (tile[::SPARSE, ::SPARSE] != tile[0, 0]).any() or not _is_of_one_colour(tile):
        yield Shown(number, plan.shown(number, tile))


def _is_of_one_colour(tile: Pixels) -> bool:
    # Each row with the first one: numpy compares long rows 20 times as fast as pixels of three bytes.
    return bool((tile[0] == tile[0, 0]).all() and (tile == tile[0]).all())


# Windows that are read ahead by threads, each with its own handle, while the network answers others.


# Enough that a row of windows that has to be decoded at once does not stop the network: 32 windows of 400 px.
AHEAD_BYTES = 16 << 20
# What is handed over at a time: between threads that costs as much as copying a window of 400 px.
TOGETHER_BYTES = 4 << 20
# How often a wait looks whether the other side is still there.
LOOK_SECONDS = 0.1


class _Done:
    """What a thread puts last."""


Item = list[Shown] | _Done | BaseException


def windows_ahead(scene: Scene, plan: WindowPlan, numbers: NDArray[np.int64], workers: int) -> Generator[Shown]:
    """The windows with these numbers (ascending) that are worth a look, in whatever order they are read."""
    readers, threads_each = (1, workers) if scene.reads_in_parallel else (workers, 1)
    shares = [share for share in _by_rows(numbers, len(plan.grid.columns), readers) if len(share)]
    together = max(1, TOGETHER_BYTES // plan.shown_bytes)
    items: queue.Queue[Item] = queue.Queue(max(2, AHEAD_BYTES // (together * plan.shown_bytes)))
    left = threading.Event()
    groups = [_in_groups(scene.read(plan, share, threads_each), together) for share in shares]
    threads = [
        threading.Thread(target=_read, args=(some, items, left), daemon=True, name="penstock-reader") for some in groups
    ]
    for thread in threads:
        thread.start()
    try:
        yield from _taken(items, threads)
    finally:
        left.set()
        for thread in threads:
            if thread is not threading.current_thread():  # garbage is collected in any thread
                thread.join()


def _by_rows(numbers: NDArray[np.int64], columns: int, workers: int) -> list[NDArray[np.int64]]:
    """Whole rows of windows for each thread: a band of rows is decoded by one of them alone."""
    rows = np.unique(numbers // columns)
    return [numbers[np.isin(numbers // columns, some)] for some in np.array_split(rows, max(1, workers))]


def _in_groups(shown: Iterator[Shown], size: int) -> Iterator[list[Shown]]:
    while group := list(islice(shown, size)):
        yield group


def _read(groups: Iterator[list[Shown]], items: queue.Queue[Item], left: threading.Event) -> None:
    last: Item = _Done()
    try:
        for group in groups:
            if not _put(items, group, left):
                return
    except BaseException as error:  # noqa: BLE001 - it is raised again where the windows are taken
        last = error
    _put(items, last, left)


def _put(items: queue.Queue[Item], item: Item, left: threading.Event) -> bool:
    """Wait for room, as long as somebody takes; False when nobody does any more."""
    while not left.is_set():
        try:
            items.put(item, timeout=LOOK_SECONDS)
        except queue.Full:
            continue
        return True
    return False


def _taken(items: queue.Queue[Item], threads: list[threading.Thread]) -> Iterator[Shown]:
    running = len(threads)
    while running:
        try:
            item = items.get(timeout=LOOK_SECONDS)
        except queue.Empty:
            if not any(thread.is_alive() for thread in threads) and items.empty():
                return
            continue
        if isinstance(item, BaseException):
            raise item
        if isinstance(item, _Done):
            running -= 1
        else:
            yield from item
