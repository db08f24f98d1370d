"""What a user may choose for detection, checked."""

from __future__ import annotations

import math
from typing import Any

from penstock.errors import OptionError, one_of

AUTO = "auto"


def set_fields(task: Any, **values: Any) -> None:
    """Set fields of a frozen task while it is made."""
    for name, value in values.items():
        object.__setattr__(task, name, value)


def check(task: Any) -> None:
    """Refuse what is no number, or out of its range."""
    if task.levels not in (AUTO, 3, 5):
        raise OptionError(f"levels={task.levels!r} must be {AUTO}, 3 or 5.")
    one_of("architecture", task.architecture, ("retinanet", "faster_rcnn"))
    one_of("norm", task.norm, (AUTO, "frozen", "batch"))
    for name in ("flip", "vertical_flip", "turn", "colour", "score_threshold", "nms_threshold", "min_kept"):
        _between(name, getattr(task, name), 0, 1)
    _between("hue", task.hue, 0, 0.5)
    _between("input_scale", task.input_scale, 0.1, 8)
    for name in ("gsd", "anchor_scale"):
        value = getattr(task, name)
        if value not in (None, AUTO) or (value is None and name == "anchor_scale"):
            _above_zero(name, value)
    for name, least in (("size", 32), ("detections_per_image", 1)):
        value = getattr(task, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise OptionError(f"{name}={value!r} must be none or a whole number from {least}.")


def checked_zoom(zoom: Any) -> tuple[float, float]:
    """Two factors above zero, the smaller one first."""
    try:
        least, most = (float(value) for value in zoom)
    except (TypeError, ValueError):
        raise OptionError(f"zoom={zoom!r} must be two numbers, such as 0.8, 1.25.") from None
    if not 0 < least <= most < math.inf:
        raise OptionError(f"zoom={zoom!r} must be two numbers above zero, the smaller one first.")
    return least, most


def plain(value: Any) -> Any:
    """Tuples as lists, for JSON."""
    return [plain(one) for one in value] if isinstance(value, (tuple, list)) else value


def _between(name: str, value: Any, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise OptionError(f"{name}={value!r} must be a number from {least:g} to {most:g}.")


def _above_zero(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise OptionError(f"{name}={value!r} must be a number above zero, or {AUTO}.")
