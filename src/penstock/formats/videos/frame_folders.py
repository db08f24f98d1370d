"""A folder of numbered frames as a video: natural order, no gaps, one size, no clock."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.headers import UnreadableImage, read_file_header
from penstock.codecs.images import decode_image
from penstock.errors import Problem
from penstock.formats.paths import IMAGE_ENDINGS, natural, origin_of
from penstock.formats.videos.framing import Framing, framed_pixels
from penstock.formats.videos.pictures import Picture, Pixels, unreadable
from penstock.samples import Origin
from penstock.storage.plain_files import read_file


def frame_files(folder: Path) -> list[Path]:
    """The images directly in a folder, in natural order: frame_9 before frame_10."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if Path(entry.name).suffix.lower() in IMAGE_ENDINGS]
    return [folder / name for name in sorted(names, key=natural) if not name.startswith(".")]


class FrameFolder:
    """Frames as image files; the last number in a name is the number of the frame."""

    def __init__(self, path: Path, framing: Framing) -> None:
        self._path = path
        self._framing = framing
        self._files = tuple(frame_files(path))

    @property
    def file(self) -> str:
        return self._path.as_posix()

    def expected(self) -> int:
        return len(self._files)

    def times(self) -> NDArray[np.float64]:
        return np.full(len(self._files), np.nan)

    expected_times = times

    def whole_count(self, frames: int) -> int:
        return frames

    def pictures(self, start: int = 0) -> Iterator[Picture]:
        return (self.picture(number) for number in range(start, len(self._files)))

    def picture(self, number: int) -> Picture:
        try:
            data = read_file(self._files[number])
        except OSError as error:
            raise unreadable(self._files[number].as_posix(), f"cannot be read: {error.strerror}", "Check it") from error
        return Picture((self._files[number].as_posix(), data), float("nan"), float("nan"))

    def rgb(self, picture: Picture) -> Pixels:
        name, data = picture.pixels
        try:
            return framed_pixels(decode_image(data), self._framing)
        except ValueError as error:
            raise unreadable(name, error, "Write the frame again, or crop inside it") from error

    def origin(self, number: int | None = None) -> Origin:
        """The file of one frame, or the folder with the bytes and the latest change of all."""
        if number is not None:
            return origin_of(self._files[number])
        states = [file.stat() for file in self._files]
        latest = max((state.st_mtime_ns for state in states), default=0)
        return Origin(self.file, sum(state.st_size for state in states), latest)

    def problems(self) -> list[Problem]:
        return [*self._number_problems(), *self._size_problems()]

    def damage(self) -> list[Problem]:
        return []

    def _number_problems(self) -> Iterator[Problem]:
        numbers = [_number(file) for file in self._files]
        unnumbered = [file for file, number in zip(self._files, numbers, strict=True) if number is None]
        if unnumbered:
            remedy = "Number every frame; a folder of single pictures is read by ps.Images"
            yield Problem(unnumbered[0].as_posix(), None, "the name of this frame has no number", remedy)
            return
        known = [number for number in numbers if number is not None]
        for before, number, file in zip(known, known[1:], self._files[1:], strict=False):
            if number != before + 1:
                what = f"frame {number} follows frame {before}"
                remedy = "Restore the missing frames; without them every label after here belongs to another frame"
                yield Problem(file.as_posix(), None, what, remedy)

    def _size_problems(self) -> Iterator[Problem]:
        sizes: dict[Path, tuple[int, int]] = {}
        for file in self._files:
            try:
                header = read_file_header(file)
            except (UnreadableImage, OSError) as error:
                yield Problem(file.as_posix(), None, f"this frame cannot be read: {error}", "Write the frame again")
                continue
            sizes[file] = (header.width, header.height)
        if not sizes:
            return
        (usual, _), *others = Counter(sizes.values()).most_common()
        if others:
            file = next(file for file, size in sizes.items() if size != usual)
            odd = sum(count for _, count in others)
            what = (
                f"this frame is {sizes[file][0]}×{sizes[file][1]} px, most are {usual[0]}×{usual[1]} ({odd:,} differ)"
            )
            yield Problem(file.as_posix(), None, what, "Write all frames of a video in one size")
        try:
            self._framing.placement(*usual)
        except ValueError as error:
            yield Problem(self.file, None, str(error), "Give a crop inside the frame")


def _number(file: Path) -> int | None:
    found = re.findall(r"\d+", file.stem)
    return int(found[-1]) if found else None
