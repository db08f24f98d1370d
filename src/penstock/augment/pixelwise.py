"""Steps that change what a pixel is: Normalize and Grey."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from penstock.augment.geometric import chosen, needed
from penstock.augment.options import checked_probability, is_number
from penstock.augment.steps import Uniforms
from penstock.codecs.kernel.targets import Target, level_table
from penstock.errors import OptionError, nearest
from penstock.samples import Store

Channels = tuple[float, float, float]

IMAGENET = (
    (255 * 0.485, 255 * 0.456, 255 * 0.406),
    (255 * 0.229, 255 * 0.224, 255 * 0.225),
)
NAMED = ("imagenet", "pack")

# The weights 0.299, 0.587 and 0.114 of ITU-R 601 in 65,536ths, as in Pillow's `L`; together exactly one.
LUMA = (19595, 38470, 7471)


@dataclass(frozen=True)
class Normalize:
    """(level − mean) / std of each channel, as float32 with the channels first.

    `statistics` are "imagenet", "pack" (those that packing took; known when the source is), or a pair of mean and
    std of red, green and blue, of levels 0 to 255.
    """

    uniform_count: ClassVar[int] = 0

    statistics: Literal["imagenet", "pack"] | tuple[Channels, Channels] = "imagenet"

    def __post_init__(self) -> None:
        if not isinstance(self.statistics, str):
            object.__setattr__(self, "statistics", _checked_pair(self.statistics))
        elif self.statistics not in NAMED:
            legal = f"{', '.join(NAMED)}, (mean, std)"
            raise OptionError(f"statistics={self.statistics!r} is not one of {legal}.{nearest(self.statistics, NAMED)}")

    @property
    def mean(self) -> Channels:
        return self._pair[0]

    @property
    def std(self) -> Channels:
        return self._pair[1]

    def resolved(self, source: Any) -> Normalize:
        """The same step with the statistics of a source in the place of "pack"."""
        return replace(self, statistics=_statistics_of(source)) if self.statistics == "pack" else self

    def pixels(self, images: NDArray[Any], uniforms: Uniforms) -> NDArray[np.float32]:
        checked_levels("Normalize", images)
        table = level_table(Target(1, 1, "chw-float32", self.mean, self.std))
        *leading, height, width, _ = images.shape
        out = np.empty((*leading, 3, height, width), np.float32)
        for channel in range(3):
            out[..., channel, :, :] = table[channel][images[..., channel]]
        return out

    @property
    def _pair(self) -> tuple[Channels, Channels]:
        if self.statistics == "imagenet":
            return IMAGENET
        if isinstance(self.statistics, str):
            raise OptionError('Normalize("pack") does not know its pack yet. Use Normalize("pack").resolved(pack).')
        return self.statistics


@dataclass(frozen=True)
class Grey:
    """The luma of ITU-R 601 in all three channels, with probability `p`.

    (19595 R + 38470 G + 7471 B + 32768) // 65536 in whole numbers, as Pillow converts to `L`.
    """

    p: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", checked_probability(self.p))

    @property
    def uniform_count(self) -> int:
        return needed(self.p)

    def pixels(self, images: NDArray[Any], uniforms: Uniforms) -> NDArray[np.uint8]:
        checked_levels("Grey", images)
        is_chosen = chosen(self.p, len(images), uniforms)
        out: NDArray[np.uint8] = np.array(images)
        if is_chosen.any():
            out[is_chosen] = _luma(images[is_chosen])[..., None]
        return out


def checked_levels(step: str, images: NDArray[Any]) -> None:
    """Steps on pixels take levels, not what Normalize made of them."""
    if images.dtype != np.uint8 or images.ndim not in (4, 5) or images.shape[-1] != 3:
        found = f"{'×'.join(map(str, images.shape))} {images.dtype}"
        raise OptionError(f"{step} takes images of height×width×3 of uint8 and got {found}. Normalize goes last.")


def _luma(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    red, green, blue = (images[..., channel].astype(np.uint32) * weight for channel, weight in enumerate(LUMA))
    levels: NDArray[np.uint8] = ((red + green + blue + 32768) >> 16).astype(np.uint8)
    return levels


def _checked_pair(values: Any) -> tuple[Channels, Channels]:
    """Mean and std as floats; a std must be above zero, which Target says."""
    is_pair = isinstance(values, (Sequence, np.ndarray)) and len(values) == 2
    if not (is_pair and all(_are_channels(channels) for channels in values)):
        raise OptionError(
            f"statistics={values!r} must be imagenet, pack, or ((r, g, b), (r, g, b)): finite mean and std of 0…255."
        )
    mean, std = (_channels(channels) for channels in values)
    Target(1, 1, "chw-float32", mean, std)
    if max(mean) <= 1 and max(std) < 1:
        levels = ", ".join(f"({', '.join(f'{255 * value:g}' for value in channels)})" for channels in (mean, std))
        raise OptionError(
            f"statistics={(mean, std)!r} are of pixels from 0 to 1, and pixels here are levels from 0 to 255. Multiply "
            f"mean and std by 255: ({levels})."
        )
    return mean, std


def _are_channels(values: Any) -> bool:
    is_sequence = isinstance(values, (Sequence, np.ndarray)) and not isinstance(values, str)
    return is_sequence and len(values) == 3 and all(is_number(value) for value in values)


def _channels(values: Any) -> Channels:
    red, green, blue = (float(value) for value in values)
    return red, green, blue


def _statistics_of(source: Store) -> tuple[Channels, Channels]:
    """Of a pack, also below a subset of it."""
    found = source.statistics
    while not found and len(source.below) == 1:
        (source,) = source.below
    if not found or not found.get("images", 1):
        raise OptionError(
            f'Normalize("pack"): {source.kind.__name__} has no channel statistics; packs of images have them. '
            'Pack the data first, or choose "imagenet" or mean and std: Normalize("imagenet") in a flow, normalize of '
            "a task, task.normalize=imagenet in a recipe."
        )
    if min(found["std"]) <= 0:
        raise OptionError(
            f'Normalize("pack"): a channel of this pack never changes (std {found["std"]}). Give mean and std.'
        )
    return _channels(found["mean"]), _channels(found["std"])
