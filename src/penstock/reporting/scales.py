"""From values to places on an axis: where it begins and ends, and which values are written beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

# Values that span more than this factor are drawn on a logarithmic axis, where all are above zero.
LOG_FACTOR = 50.0
LARGEST = 1e300  # beyond this, differences are no numbers any more
SMALLEST = 1e-300  # below this, parts of a length are nothing
HALVES = (1.0, 2.0, 2.5, 5.0, 10.0)
WHOLES = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high` as parts of a length from 0 to 1."""

    low: float
    high: float
    ticks: tuple[float, ...]
    is_log: bool = False

    def place(self, value: float) -> float:
        """Where a value stands, from 0 to 1."""
        if self.is_log:
            return (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return (value - self.low) / (self.high - self.low)


def value_axis(values: Iterable[float], *, may_be_log: bool = False, limits: tuple[float, float] | None = None) -> Axis:
    """An axis on which all values stand, with round values at its ends; `limits` are never passed."""
    finite = [value for value in values if abs(value) < LARGEST] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if may_be_log and low > SMALLEST and high / low > LOG_FACTOR:
        return _log_axis(low, high)
    low, high = _apart(low, high)
    step = round_step((high - low) / 4)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    if limits is not None:
        low, high = max(low, limits[0]), min(high, limits[1])
    return Axis(low, high, _steps(low, high, step))


def position_axis(low: float, high: float) -> Axis:
    """An axis for epochs, steps or seconds: it ends where they end, and whole numbers are written."""
    if _is_same(low, high):
        return Axis(low - 0.5, low + 0.5, (low,))
    step = max(round_step((high - low) / 6, WHOLES), 1.0 if high - low >= 2 else 0.0)
    return Axis(low, high, _steps(math.ceil(low / step - 1e-9) * step, high, step))


def _apart(low: float, high: float) -> tuple[float, float]:
    """A little room where all values are the same."""
    if not _is_same(low, high):
        return low, high
    room = abs(low) * 0.1 if abs(low) > SMALLEST else 0.5
    return low - room, high + room


def _is_same(low: float, high: float) -> bool:
    return high - low <= max(abs(low), abs(high)) * 1e-9 + SMALLEST


def _log_axis(low: float, high: float) -> Axis:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = -(-(last - first) // 6)
    return Axis(10.0**first, 10.0**last, tuple(10.0**power for power in range(first, last + 1, every)), is_log=True)


def round_step(length: float, factors: tuple[float, ...] = HALVES) -> float:
    """The next round number: one of these factors times a power of ten."""
    power = 10.0 ** math.floor(math.log10(length))
    return next(factor * power for factor in factors if factor * power >= length * (1 - 1e-9))


def _steps(low: float, high: float, step: float) -> tuple[float, ...]:
    count = math.floor((high - low) / step + 1e-6)
    # Through a text, so that 0.30000000000000004 is 0.3.
    return tuple(float(f"{low + number * step:.10g}") for number in range(count + 1))
