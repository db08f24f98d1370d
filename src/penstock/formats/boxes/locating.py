"""From the names in annotations to image files: looked for in one folder, or among the files that are given."""

from __future__ import annotations

import importlib.util
import os
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.headers import UnreadableImage, read_file_header
from penstock.codecs.images import undecodable
from penstock.codecs.map_files import RefusedFile, gdal_errors, open_raster
from penstock.errors import MOST_COMPARED, DataError, Problem, nearest, plain_word
from penstock.formats.boxes.rows import ImageName
from penstock.formats.paths import IMAGE_ENDINGS, unsafe
from penstock.formats.reading import ReadingOptions
from penstock.storage.locations import readable_name
from penstock.wording import counted

# A table whose images are all elsewhere is not worth more comparisons.
MOST_GUESSES = 20
_OUTSIDE = "Pass images, the folder that holds it, or allow_outside=True; or write it relative to the annotations"
# Opening a file is waiting, not computing: more threads than cores hide it. A task of one file would cost more
# in handing over than in reading.
HEADER_THREADS = 8
HEADERS_PER_TASK = 32


class NotFound(Exception):  # noqa: N818 - reads as what it is
    """An image cannot be had: what is wrong, and what to do about it."""

    def __init__(self, what: str, remedy: str, *, missing: bool = False) -> None:
        super().__init__(what)
        self.what, self.remedy, self.missing = what, remedy, missing


@dataclass
class FolderFinder:
    """Finds images below the folder of their table, or below `images`; each folder is listed at most once."""

    images: Path | None = None
    allow_outside: bool = False
    _listings: dict[Path, list[str]] = field(default_factory=dict)
    _stems: dict[Path, dict[str, list[str]]] = field(default_factory=dict)
    _twins: dict[Path, dict[str, str]] = field(default_factory=dict)
    _guesses: int = 0

    def find(self, image: ImageName) -> Path:
        """The file of an image, or NotFound with the reason."""
        if image.file is not None:
            return image.file
        folder = self.images or image.folder
        path = self._by_name(folder, image.name) if image.name else None
        if path is None and image.stem:
            path = self._by_stem(folder, image.stem)
        if path is None:
            raise self._missing(folder, image)
        return path

    def expected(self, image: ImageName) -> Path:
        """Where an image that is not there should be."""
        return (self.images or image.folder) / (image.name or image.stem)

    def _by_name(self, folder: Path, name: str) -> Path | None:
        if not self.allow_outside and unsafe(name) and not _is_inside(name, folder):
            what = f"the path {name!r} leaves the folder {folder}"
            raise NotFound(what, _OUTSIDE)
        candidates = [name, name.replace("\\", "/"), name.replace("\\", "/").rsplit("/", 1)[-1]]
        found = next((folder / each for each in dict.fromkeys(candidates) if _is_file(folder, each)), None)
        if found is not None and not self.allow_outside and _leaves(found, folder):
            what = f"the path {name!r} leaves the folder {folder} through a symbolic link, to {found.resolve()}"
            raise NotFound(what, "Copy the file into the folder, or pass allow_outside=True")
        # Predictions name images as they were given, from the folder where the program ran.
        return Path(name) if found is None and self.allow_outside and _is_file(Path(), name) else found

    def _by_stem(self, folder: Path, stem: str) -> Path | None:
        if folder not in self._stems:
            stems = defaultdict(list)
            for name in self._listing(folder):
                if Path(name).suffix.lower() in IMAGE_ENDINGS:
                    stems[Path(name).stem].append(name)
            self._stems[folder] = dict(stems)
        names = self._stems[folder].get(stem, [])
        if len(names) > 1:
            what = f"several images in {folder} are called {stem}: {', '.join(names)}"
            raise NotFound(what, "Keep one of them there, or write a table with an image_path column")
        return folder / names[0] if names else None

    def _listing(self, folder: Path) -> list[str]:
        if folder not in self._listings:
            self._listings[folder] = sorted(file.name for file in folder.iterdir()) if folder.is_dir() else []
        return self._listings[folder]

    def _nearest(self, folder: Path, name: str) -> str:
        """The image that a name may have meant: of the same stem, or like it; a table beside them cannot be."""
        if folder not in self._twins:
            images = [there for there in self._listing(folder) if Path(there).suffix.lower() in IMAGE_ENDINGS]
            self._twins[folder] = {plain_word(Path(image).stem): image for image in reversed(images)}
        twins = self._twins[folder]
        twin = twins.get(plain_word(Path(name).stem))
        if twin is not None:
            return f" Did you mean {twin!r}?"
        self._guesses += 1
        return nearest(name, twins.values()) if self._guesses <= MOST_GUESSES and len(twins) <= MOST_COMPARED else ""

    def _missing(self, folder: Path, image: ImageName) -> NotFound:
        if not image.name:
            what = f"there is no image called {image.stem} in {folder or '.'}"
            return NotFound(what, "Pass images, their folder", missing=True)
        hint = self._nearest(folder, Path(image.name.replace("\\", "/")).name)
        where = f"the image {image.name!r} does not exist in {folder if folder.name else 'the current folder'}"
        return NotFound(where, f"Put it there, or pass images, the folder that holds it.{hint}", missing=True)


def _is_file(folder: Path, name: str) -> bool:
    try:
        return os.path.isfile(os.path.join(folder, name))  # noqa: PTH113, PTH118 - ten times as fast for 10⁵ names
    except ValueError:  # a null character
        return False


def _leaves(path: Path, folder: Path) -> bool:
    """Whether links lead out of a folder, which may itself be one."""
    real = os.path.realpath(path)
    if real == os.path.abspath(path):  # noqa: PTH100 - of most files, and asked for each of 10⁵
        return False
    return not Path(real).is_relative_to(os.path.realpath(folder))


def _is_inside(name: str, folder: Path) -> bool:
    """Whether an absolute path without `..` lies inside a folder all the same."""
    return ".." not in Path(name).parts and Path(name).is_absolute() and Path(name).is_relative_to(folder.absolute())


class FileFinder:
    """Finds images among given files, by as much of the path as the annotation writes."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = files
        self._by_name: dict[str, list[Path]] = defaultdict(list)
        self._by_stem: dict[str, list[Path]] = defaultdict(list)
        for file in files:
            self._by_name[file.name].append(file)
            self._by_stem[file.stem].append(file)

    def find(self, image: ImageName) -> Path:
        if image.file is not None and image.file in self._by_name[image.file.name]:
            return image.file
        parts = [part for part in image.name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
        found = self._by_name.get(parts[-1], []) if parts else []
        closer = [file for file in found if list(file.absolute().parts[-len(parts) :]) == parts]
        found = closer or found
        if not found and image.stem:
            found = self._by_stem.get(image.stem, [])
        return self._only(found, image)

    def expected(self, image: ImageName) -> Path:
        return image.folder / (image.name or image.stem)

    def _only(self, found: list[Path], image: ImageName) -> Path:
        name = image.name or image.stem
        if len(found) > 1:
            what = f"the image {name!r} may be {found[0]} or {found[1]}"
            raise NotFound(what, "Write more of its path")
        if not found:
            twins = self._by_stem.get(Path(name).stem)
            hint = f" Did you mean {twins[0].name!r}?" if twins else ""
            what = f"the image {name!r} is not among the {counted(len(self.files), 'file')} that are read"
            raise NotFound(what, f"Add the file, remove the row, or pass ignore_other_images.{hint}")
        return found[0]


def make_finder(options: ReadingOptions) -> FolderFinder | FileFinder:
    """The finder that the options ask for."""
    if options.files is not None:
        return FileFinder(options.files)
    return FolderFinder(options.images, options.allow_outside)


def keys_of(files: Sequence[Path]) -> list[str]:
    """Paths relative to the folder that all of them share."""
    if not files:
        return []
    whole = [str(file.absolute()) for file in files]
    folder = os.path.commonpath([os.path.dirname(path) for path in whole])  # noqa: PTH120 - fast for 10⁵ names
    return [readable_name(os.path.relpath(path, folder).replace(os.sep, "/")) for path in whole]


def read_sizes(
    files: Sequence[Path],
    wanted: NDArray[np.bool_],
    *,
    any_raster: bool = False,
    allow_drivers: Sequence[str] = (),
    decoded: bool = False,
) -> tuple[NDArray[np.int64], dict[int, str]]:
    """Width and height from each header, each file opened once; and why, where that failed (0 0).

    `any_raster` also takes what only GDAL can read, where rasterio is installed. `decoded` refuses what is too large to
    be decoded as a whole.
    """

    def size(number: int) -> tuple[int, int] | str:
        try:
            header = read_file_header(files[number])
        except UnreadableImage as error:
            if any_raster and str(error).startswith("it is no"):
                return _raster_size(files[number], allow_drivers) or str(error)
            return str(error)
        except OSError as error:
            return f"it cannot be read: {error.strerror}"
        return (undecodable(header) if decoded else "") or (header.width, header.height)

    sizes = np.zeros((len(files), 2), np.int64)
    reasons: dict[int, str] = {}
    numbers = np.flatnonzero(wanted).tolist()
    tasks = [numbers[start : start + HEADERS_PER_TASK] for start in range(0, len(numbers), HEADERS_PER_TASK)]
    with ThreadPoolExecutor(HEADER_THREADS) as pool:
        found = [result for task in pool.map(lambda task: [size(number) for number in task], tasks) for result in task]
    for number, result in zip(numbers, found, strict=True):
        if isinstance(result, str):
            reasons[number] = result
        else:
            sizes[number] = result
    return sizes, reasons


def _raster_size(file: Path, allow_drivers: Sequence[str]) -> tuple[int, int] | str | None:
    """The size as GDAL reads it (JPEG 2000, and what is allowed), or why it is not opened; None where it cannot."""
    if importlib.util.find_spec("rasterio") is None:
        return None
    damage: tuple[type[Exception], ...] = (UnreadableImage, *gdal_errors())
    try:
        with open_raster(file, allow_drivers=allow_drivers) as raster:
            return raster.width, raster.height
    except RefusedFile as refused:
        return f"{refused.what}. {refused.remedy}"
    except damage:
        return None


def unreadable(file: str, reason: str) -> Problem:
    """The problem of an image that cannot be read."""
    what = f"the image cannot be read: {reason}"
    return Problem(file, None, what, "Replace or remove it, or pack with on_bad_sample='skip'", unreadable=True)


def no_images(place: str) -> DataError:
    """The error for a place that should hold images and holds none."""
    endings = " ".join(sorted(IMAGE_ENDINGS))
    return DataError([Problem(place, None, "there are no images", f"Expected files ending in {endings}")])
