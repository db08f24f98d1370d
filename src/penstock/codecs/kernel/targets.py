"""What every sample of a range becomes, and the checks of a range before anything is decoded."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError, one_of

Layout = Literal["hwc-uint8", "chw-float32"]
Reduced = Literal["never", "when-twice"]
Channels = tuple[float, float, float]

MOST_SIDE = 16384  # as in c/kernel.h
MOST_RESIZED = 2**20  # as in c/kernel.h
HORIZONTAL, VERTICAL = 1, 2  # bits of a flip


class Failure(NamedTuple):
    """A sample of a range that could not be made; its part of the output is undefined."""

    position: int
    reason: str


@dataclass(frozen=True)
class Target:
    """The size and layout of a sample; `mean` and `std` are of levels 0…255 and belong to chw-float32."""

    width: int
    height: int
    layout: Layout = "hwc-uint8"
    mean: Channels | None = None
    std: Channels | None = None

    def __post_init__(self) -> None:
        one_of("layout", self.layout, get_args(Layout))
        if not (1 <= self.width <= MOST_SIDE and 1 <= self.height <= MOST_SIDE):
            raise OptionError(f"size {self.width}x{self.height} must be from 1x1 to {MOST_SIDE}x{MOST_SIDE}.")
        if self.layout == "hwc-uint8" and (self.mean or self.std):
            raise OptionError("mean and std need layout='chw-float32': uint8 cannot hold normalised values.")
        for name, values in (("mean", self.mean), ("std", self.std)):
            if values is not None and not (len(values) == 3 and np.isfinite(values).all()):
                raise OptionError(f"{name}={values} must be three finite numbers.")
        if self.std is not None and min(self.std) <= 0:
            raise OptionError(f"std={self.std} must be above zero.")

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of one sample."""
        if self.layout == "hwc-uint8":
            return self.height, self.width, 3
        return 3, self.height, self.width

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.uint8 if self.layout == "hwc-uint8" else np.float32)


@functools.lru_cache(maxsize=16)
def level_table(target: Target) -> NDArray[np.float32]:
    """The float of each of 256 levels of each channel: (level − mean) / std, rounded once to float32."""
    mean = np.asarray(target.mean or (0.0, 0.0, 0.0))
    std = np.asarray(target.std or (1.0, 1.0, 1.0))
    table: NDArray[np.float32] = ((np.arange(256.0) - mean[:, None]) / std[:, None]).astype(np.float32)
    table.flags.writeable = False
    return table


class Placed(Sequence[Any]):
    """Encoded images that are stretches of larger buffers: n×3 numbers, buffer, offset and length of each.

    `has_large` says that images may be among them whose decoding counts in the memory budget.
    """

    def __init__(self, buffers: Sequence[Any], places: NDArray[Any], *, has_large: bool = False) -> None:
        if places.ndim != 2 or places.shape[1] != 3 or places.dtype.kind not in "iu":
            raise OptionError(f"places must be n×3 whole numbers and are {_described(places)}.")
        self.buffers, self.places = check_buffers(buffers), np.ascontiguousarray(places, np.int64)
        self.has_large = has_large

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, position: Any) -> Any:
        buffer, offset, length = self.places[position].tolist()
        if min(buffer, offset, length) >= 0 and buffer < len(self.buffers):
            data = memoryview(self.buffers[buffer]).cast("B")[offset : offset + length]
            if len(data) == length:
                return data
        raise ValueError(f"the place of image {position} is not in its buffer")


class Job(NamedTuple):
    """A checked range: what each sample shows, and where it goes."""

    views: NDArray[np.int64]  # n×8: crop, resized size, where the part begins
    flips: NDArray[np.uint8]
    out: NDArray[Any]
    target: Target
    fill: int

    @property
    def table(self) -> NDArray[np.float32] | None:
        """What levels become; None where they stay levels."""
        return None if self.target.layout == "hwc-uint8" else level_table(self.target)


def checked_views(crops: NDArray[Any], count: int, target: Target) -> NDArray[np.int64]:
    """n×8 numbers (crop, resized size, where the part begins); n×4 are crops whose part is all of the target."""
    if crops.ndim != 2 or len(crops) != count or crops.shape[1] not in (4, 8) or crops.dtype.kind not in "iu":
        raise OptionError(f"crops must be {count}×4 or {count}×8 whole numbers and are {_described(crops)}.")
    if crops.shape[1] == 8:
        return np.ascontiguousarray(crops, np.int64)
    views = np.zeros((count, 8), np.int64)
    views[:, :4] = crops
    views[:, 4:6] = target.width, target.height
    return views


def checked_places(places: NDArray[Any]) -> NDArray[np.int64]:
    if places.ndim != 2 or places.shape[1] != 4 or places.dtype.kind not in "iu":
        raise OptionError(f"places must be n×4 whole numbers and are {_described(places)}.")
    return np.ascontiguousarray(places, np.int64)


def check_fill(fill: int) -> None:
    if not 0 <= fill <= 255:
        raise OptionError(f"fill={fill} must be a level from 0 to 255.")


def checked_flips(flips: NDArray[Any], count: int) -> NDArray[np.uint8]:
    if flips.shape != (count,) or flips.dtype != np.uint8:
        raise OptionError(f"flips must be {count} of uint8 and are {_described(flips)}.")
    return np.ascontiguousarray(flips)


def check_out(out: NDArray[Any], target: Target, count: int) -> None:
    """The output is written through a plain pointer, so nothing may be other than expected."""
    if out.shape != (count, *target.shape) or out.dtype != target.dtype:
        wanted = f"{count}×{'×'.join(map(str, target.shape))} {target.dtype}"
        raise OptionError(f"out must be {wanted} and is {_described(out)}.")
    if not (out.flags.c_contiguous and out.flags.writeable and out.flags.aligned):
        raise OptionError("out must be writable, aligned and C-contiguous. Pass a slice of whole samples of a batch.")


def check_sources(sources: Sequence[Any]) -> tuple[Any, ...] | Placed:
    if isinstance(sources, (bytes, bytearray, memoryview, str)):
        raise OptionError("sources must be a sequence of encoded images. Pass [data] for one image.")
    return sources if isinstance(sources, Placed) else tuple(sources)


def check_buffers(buffers: Sequence[Any]) -> tuple[Any, ...]:
    if isinstance(buffers, (bytes, bytearray, memoryview, str, np.ndarray)):
        raise OptionError("buffers must be a sequence of buffers with pixels. Pass (buffer,) for one.")
    return tuple(buffers)


def _described(array: NDArray[Any]) -> str:
    return f"{'×'.join(map(str, array.shape)) or 'one'} {array.dtype}"
