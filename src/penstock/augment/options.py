"""The checks of what users may choose for a step, at the door."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.errors import OptionError
from penstock.geometry import LARGEST_SIDE, parse_size

Size = int | tuple[int, int] | str


def checked_size(size: Any) -> tuple[int, int]:
    """One side of a square, (width, height) or "WIDTHxHEIGHT", as (width, height)."""
    if _is_whole(size):
        return parse_size((int(size), int(size)))
    if isinstance(size, str) and size.strip().isdecimal():
        return parse_size((int(size), int(size)))
    is_pair = isinstance(size, Sequence) and not isinstance(size, str) and len(size) == 2
    if isinstance(size, str) or (is_pair and all(_is_whole(side) for side in size)):
        return parse_size(size)
    raise OptionError(f'size={size!r} is not one of a whole number, (width, height), "WIDTHxHEIGHT".')


def checked_side(size: Any, option: str) -> int:
    """The length of one side."""
    if not (_is_whole(size) and 1 <= size <= LARGEST_SIDE):
        raise OptionError(f"size={size!r} with {option} must be one whole number from 1 to {LARGEST_SIDE}.")
    return int(size)


def checked_whole(name: str, value: Any, most: int) -> int:
    if not (_is_whole(value) and 0 <= value <= most):
        raise OptionError(f"{name}={value!r} must be a whole number from 0 to {most}.")
    return int(value)


def checked_probability(value: Any) -> float:
    if not (is_number(value) and 0 <= value <= 1):
        raise OptionError(f"p={value!r} must be a probability from 0 to 1.")
    return float(value)


def checked_range(name: str, values: Any, most: float = math.inf) -> tuple[float, float]:
    """Two numbers above zero, the smaller one first."""
    is_pair = isinstance(values, Sequence) and len(values) == 2 and all(is_number(value) for value in values)
    if not (is_pair and 0 < values[0] <= values[1] <= most and math.isfinite(values[1])):
        limit = "" if math.isinf(most) else f" and at most {most:g}"
        raise OptionError(f"{name}={values!r} must be (smallest, largest), both above 0{limit}.")
    return float(values[0]), float(values[1])


def _is_whole(value: Any) -> bool:
    # numpy's whole numbers have __index__ too; True would be taken for 1
    return hasattr(value, "__index__") and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether it is one finite number, of Python or numpy."""
    is_one = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    return is_one and math.isfinite(value)
