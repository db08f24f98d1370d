"""The settings of a behaviour task: the sizes that it comes in, and the checks of what a user chooses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from penstock.errors import OptionError, nearest, one_of
from penstock.geometry import parse_size
from penstock.geometry.frame_sizes import is_legal, nearest_legal
from penstock.wording import counted

# The sizes that a behaviour model comes in, as plain facts: what is looked with, and how wide.


SizeName = Literal["tiny", "fast", "medium", "slow"]


@dataclass(frozen=True)
class Size:
    """What a size is made of.

    backbone        the network of torchvision whose weights its streams begin with
    motion_width    channels of the first map of the motion network
    sees_clips      the spatial stream sees all frames of a clip, not the middle one alone
    """

    backbone: str
    motion_width: int
    sees_clips: bool = False


SIZES: dict[str, Size] = {
    "tiny": Size("mobilenet_v2", 8),
    "fast": Size("resnet18", 16),
    "medium": Size("resnet50", 24),
    "slow": Size("resnet34", 16, sees_clips=True),
}

# What DeepEthogram calls its sizes.
DEEPETHOGRAM_SIZES = {"deg_f": "fast", "deg_m": "medium", "deg_s": "slow"}


# Whether the settings of a behaviour task make sense, said at the door.


AUTO: Final = "auto"
BACKGROUND = "background"
PROBABILITIES = ("vertical_flip", "brightness", "contrast", "saturation", "grey", "label_smoothing")
COUNTS = ("flow_epochs", "sequence_epochs", "clips_per_epoch", "window_frames")


def set_fields(task: Any, **values: Any) -> None:
    """Put checked values in the place of what a user gave."""
    for name, value in values.items():
        object.__setattr__(task, name, value)


def checked_behaviours(names: Any) -> tuple[str, ...]:
    """Names of behaviours, each once."""
    if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        raise OptionError(f"behaviours={names!r} must be a list of names.")
    twice = {name for name in names if list(names).count(name) > 1}
    if twice:
        raise OptionError(f"behaviours has {', '.join(sorted(twice))} more than once.")
    if tuple(names) == (BACKGROUND,):
        raise OptionError("behaviours has nothing but background: name at least one behaviour.")
    return tuple(names)


def checked_size(size: Any) -> str:
    """A size by its own name, or by that of DeepEthogram."""
    word = str(size).lower()
    word = DEEPETHOGRAM_SIZES.get(word, word)
    if word not in SIZES:
        also = ", ".join(f"{theirs} ({own})" for theirs, own in DEEPETHOGRAM_SIZES.items())
        raise OptionError(f"size={size!r} is not one of {', '.join(SIZES)}, or {also}.{nearest(word, tuple(SIZES))}")
    return word


def checked_image_size(size: Any) -> tuple[int, int] | str:
    """Width and height that the networks take."""
    if size == AUTO:
        return AUTO
    if isinstance(size, str):
        size = parse_size(size)
    if isinstance(size, int) and not isinstance(size, bool):
        size = (size, size)
    is_pair = isinstance(size, (tuple, list)) and len(size) == 2 and all(isinstance(side, int) for side in size)
    if not is_pair:
        raise OptionError(f"image_size={size!r} must be auto, WIDTHxHEIGHT or [width, height] in px.")
    if not is_legal(*size):
        raise OptionError(f"image_size={list(size)} {legal_words(*size)}.")
    return int(size[0]), int(size[1])


def legal_words(width: int, height: int) -> str:
    """What is wrong with a size, and which are near it."""
    near = f"{nearest_legal(width)}x{nearest_legal(height)}"
    return f"has sides that are no multiples of 32, which the networks need; the nearest legal size is {near}"


def check(task: Any) -> None:
    """Raise a OptionError for the first setting that is not legal."""
    one_of("sequence", task.sequence, ("convolution", "gru"))
    _whole("frames", task.frames, 3)
    _whole("stride", task.stride, 1)
    for name in COUNTS:
        _whole(name, getattr(task, name), 1)
    for name in PROBABILITIES:
        _between(name, getattr(task, name), 0, 1)
    if task.flip != AUTO:
        _between("flip", task.flip, 0, 1)
    _between("hue", task.hue, 0, 0.5)
    _between("rotation", task.rotation, 0, 180)
    _between("focal", task.focal, 0, 10)
    _between("weight_exponent", task.weight_exponent, 0, 1)
    _between("l2_sp", task.l2_sp, 0, 1)
    _between("min_bout_percentile", task.min_bout_percentile, 0, 100)
    _check_one_each(task, "score_thresholds", 0, 1)
    _check_one_each(task, "min_bout_frames", 1, math.inf)
    _check_patience(task.patience)


def _check_one_each(task: Any, name: str, least: float, most: float) -> None:
    """One number for each behaviour, or auto."""
    values = getattr(task, name)
    if values == AUTO:
        return
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise OptionError(f"{name}={values!r} must be auto, or a number for each behaviour.")
    if task.behaviours and len(values) != len(task.behaviours):
        raise OptionError(f"{name} has {len(values)} numbers for {counted(len(task.behaviours), 'behaviour')}.")
    for value in values:
        _between(name, value, least, most)
    set_fields(task, **{name: tuple(values)})


def _check_patience(patience: Any) -> None:
    if patience is not None:
        _whole("patience", patience, 1)


def _whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OptionError(f"{name}={value!r} must be a whole number from {least}.")


def _between(name: str, value: Any, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise OptionError(f"{name}={value!r} must be a number from {least:g} to {most:g}.")


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    return [plain(one) for one in value] if isinstance(value, (tuple, list)) else value
