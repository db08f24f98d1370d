"""Sides of frames that networks for behaviours take."""

from __future__ import annotations

# Networks halve their input five times: sides that do not divide so are cut off unevenly.
LEGAL_STEP = 32


def nearest_legal(length: int) -> int:
    """The side that networks take which is nearest to a given one."""
    return max(LEGAL_STEP, round(length / LEGAL_STEP) * LEGAL_STEP)


def is_legal(width: int, height: int) -> bool:
    return width > 0 and height > 0 and width % LEGAL_STEP == 0 and height % LEGAL_STEP == 0
