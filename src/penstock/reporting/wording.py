"""Numbers, times and names as a reader of a page wants them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

MISSING = "–"


def number(value: Any) -> float:
    """A number of a file that may hold anything; nan for what is none."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.nan
    return math.nan


def shown(value: Any, digits: int = 4) -> str:
    """A number in as many digits as say something."""
    found = number(value)
    if not math.isfinite(found):
        return MISSING
    if found == round(found) and abs(found) < 1e15:
        return f"{found:,.0f}"
    if 1e-3 <= abs(found) < 1e6:
        return f"{found:,.{max(0, digits - 1 - math.floor(math.log10(abs(found))))}f}"
    return f"{found:.{digits - 1}g}"


def score_text(value: Any) -> str:
    """A score: three digits after the point where it lies between 0 and 1."""
    found = number(value)
    if math.isfinite(found) and 0 <= found <= 1:
        return f"{found:.3f}"
    return shown(found)


def percent(value: Any) -> str:
    """A share; one digit more where it is small, so that little is not nothing."""
    found = number(value)
    if not math.isfinite(found):
        return MISSING
    return f"{found:.1%}" if 0 < found < 0.0995 else f"{found:.0%}"


def duration(seconds: Any) -> str:
    """Seconds as people say them."""
    found = number(seconds)
    if not math.isfinite(found) or found < 0:
        return MISSING
    if found < 60:
        return f"{found:.0f} s" if found >= 10 else f"{found:.1f} s"
    minutes, rest = divmod(round(found), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


def moment(text: Any) -> str:
    """A time of a Run, such as 16 Nov 2026, 04:44 UTC."""
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return MISSING if text is None else str(text)
    zone = f" {found.tzname()}" if found.tzinfo is not None else ""
    return f"{found.day} {found:%b %Y, %H:%M}{zone}"


def words(name: str) -> str:
    """A name of a metric as words."""
    return name.replace("_", " ")


def value_text(value: Any) -> str:
    """A setting as a recipe writes it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(value_text(each) for each in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {value_text(each)}" for key, each in value.items()) + "}"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if value != "" else "''"


def listed(names: Sequence[str], most: int) -> str:
    """Some of many names."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest:,} more" if rest > 0 else "")


_WHOLE_PATH = re.compile(r"(?:[A-Za-z]:)?[/\\](?:[^/\\\n]+[/\\])+[^/\\\n]+[/\\]?")
_PATH_INSIDE = re.compile(r"(?<![\w.…/\\:~])(?:[A-Za-z]:)?[/\\](?:[^\s/\\'\"]+[/\\])+[^\s/\\'\"]+")
KEPT_PARTS = 2


def without_folders(text: str) -> str:
    """A text whose absolute paths are cut to their ends: a page is for others too, who do not know that disk.

    What begins with a slash and has no other one, such as /s, is left.
    """
    if _WHOLE_PATH.fullmatch(text):
        return _end_of_path(text)
    return _PATH_INSIDE.sub(lambda found: _end_of_path(found[0]), text)


def _end_of_path(path: str) -> str:
    parts = [part for part in re.split(r"[/\\]", path) if part]
    return "…/" + "/".join(parts[-KEPT_PARTS:])
