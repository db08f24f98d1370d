"""DeepEthogram's HDF5 of encoded frames: a dataset `frame` of variable length bytes, one JPEG or PNG each.

Its writer hands RGB to an encoder that takes BGR, so a normal decoder gives red and blue exchanged; they are
exchanged back here. The file has no clock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.images import decode_image
from penstock.errors import DataError, Problem
from penstock.formats.hdf5.hdf5_doors import open_hdf5_file
from penstock.formats.paths import origin_of
from penstock.formats.videos.framing import Framing, framed_pixels
from penstock.formats.videos.pictures import Picture, Pixels, unreadable
from penstock.samples import Origin

HDF5_ENDINGS = frozenset({".h5", ".hdf5"})
DATASET = "frame"


class FrameHdf5:
    """One file of encoded frames; every thread opens it for itself."""

    def __init__(self, path: Path, framing: Framing) -> None:
        self._path = path
        self._framing = framing
        self._first_size: tuple[int, ...] | None = None
        self._count: int | None = None
        self._checked = False
        self._local = threading.local()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_local"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._local = threading.local()

    @property
    def file(self) -> str:
        return self._path.as_posix()

    def _frames(self) -> Any:
        dataset = getattr(self._local, "dataset", None)
        if dataset is None:
            dataset = self._local.dataset = self._open()
        return dataset

    def _open(self) -> Any:
        try:
            opened = open_hdf5_file(self._path, "Reading HDF5 videos", check=not self._checked)
            self._checked = True
        except OSError as error:
            raise unreadable(self.file, f"it cannot be opened as HDF5 ({error})") from error
        if DATASET not in opened:
            what = f"it has no dataset {DATASET!r}; there are {', '.join(opened) or 'none'}"
            raise unreadable(self.file, what, "Only DeepEthogram's HDF5 of encoded frames is read")
        return opened[DATASET]

    def expected(self) -> int:
        if self._count is None:
            self._count = len(self._frames())
        return self._count

    def times(self) -> NDArray[np.float64]:
        return np.full(self.expected(), np.nan)

    expected_times = times

    def whole_count(self, frames: int) -> int:
        return frames

    def pictures(self, start: int = 0) -> Iterator[Picture]:
        return (self.picture(number) for number in range(start, self.expected()))

    def picture(self, number: int) -> Picture:
        try:
            data = np.asarray(self._frames()[number], np.uint8).tobytes()
        except (OSError, ValueError) as error:
            raise unreadable(self.file, f"frame {number} cannot be read ({error})") from error
        return Picture((number, data), float("nan"), float("nan"))

    def rgb(self, picture: Picture) -> Pixels:
        number, data = picture.pixels
        try:
            swapped = decode_image(data)
            self._need_size_of_crop(swapped.shape[:2])
            return framed_pixels(np.ascontiguousarray(swapped[:, :, ::-1]), self._framing)
        except ValueError as error:
            raise unreadable(self.file, f"frame {number}: {error}") from error

    def _need_size_of_crop(self, size: tuple[int, ...]) -> None:
        """A crop in pixels is meant for frames as large as the first one."""
        if self._framing.crop is None:
            return
        if self._first_size is None:
            self._first_size = decode_image(self.picture(0).pixels[1]).shape[:2]
        if size != self._first_size:
            first = f"{self._first_size[1]}×{self._first_size[0]}"
            raise ValueError(f"it has {size[1]}×{size[0]} px, and the crop is meant for frames of {first} px")

    def origin(self, number: int | None = None) -> Origin:
        return origin_of(self._path)

    def problems(self) -> list[Problem]:
        """Whether it opens, and whether its first frame decodes and the crop lies inside."""
        try:
            if self.expected():
                self.rgb(self.picture(0))
        except DataError as error:
            return list(error.problems)
        return [] if self.expected() else [Problem(self.file, None, "it holds no frame", "Convert the video again")]

    def damage(self) -> list[Problem]:
        return []
