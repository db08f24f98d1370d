"""What a video of any kind offers: pictures in order, one picture by number, and when each is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, Problem
from penstock.samples import Origin

Pixels = NDArray[np.uint8]


class Picture(NamedTuple):
    """One frame, not yet RGB, and when it is shown, in seconds since the first frame.

    `time_seconds` is not a number where the video has no clock (a folder of frames).
    """

    pixels: Any
    time_seconds: float
    until_seconds: float


class Footage(Protocol):
    """A video file, a folder of numbered frames, or an HDF5 of encoded frames."""

    @property
    def file(self) -> str: ...
    def expected(self) -> int: ...
    def whole_count(self, frames: int) -> int:
        """How many frames there are, when `frames` is all that a full pass gave, with those of an end that is lost."""
        ...

    def expected_times(self) -> NDArray[np.float64]: ...
    def pictures(self, start: int = 0) -> Iterator[Picture]: ...
    def times(self) -> NDArray[np.float64]: ...
    def picture(self, number: int) -> Picture: ...
    def rgb(self, picture: Picture) -> Pixels: ...
    def origin(self, number: int | None = None) -> Origin:
        """The state of the whole video, or of what holds one frame."""
        ...

    def problems(self) -> list[Problem]:
        """What is wrong as far as can be seen without decoding everything."""
        ...

    def damage(self) -> list[Problem]:
        """What only a full pass finds."""
        ...


def until(times: NDArray[np.float64], number: int, *, is_whole: bool = True) -> float:
    """When the frame after this one is shown; the last stays for ever, unless others follow that nobody sees."""
    if number + 1 < len(times):
        return float(times[number + 1])
    if is_whole:
        return float("inf")
    return end_of(times) if len(times) > 1 else float(times[-1])


def end_of(times: NDArray[np.float64]) -> float:
    """When the last frame is over, if it stays as long as the one before it."""
    if len(times) < 2:
        return float("inf")
    return float(2 * times[-1] - times[-2])


def unreadable(file: str, reason: object, remedy: str = "Re-encode the video, or leave it out") -> DataError:
    return DataError([Problem(file, None, str(reason), remedy, unreadable=True)])
