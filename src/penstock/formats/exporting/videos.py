"""Frames of videos: which video a frame belongs to, and how many came in a second."""

from __future__ import annotations

import math
from typing import Any

from penstock.formats.exporting.pieces import Piece
from penstock.storage.writing.preparing import Row


def video_of(row: Row) -> str:
    """The video that a frame belongs to: its key without the number of the frame."""
    key = str(row.values["key"])
    return key.rpartition("#")[0] or str(row.values.get("group") or key)


def note_time(piece: Piece, row: Row) -> None:
    """Keep what the frame rate is worked out from, and the size of the frames."""
    if "frame" not in row.values:
        return
    seconds = float(row.values.get("time", math.nan))
    piece.facts.setdefault("video", video_of(row))
    piece.facts.setdefault("first_time", seconds if math.isfinite(seconds) else None)
    piece.facts["last_time"] = seconds if math.isfinite(seconds) else None
    piece.facts.setdefault("width", row.width)
    piece.facts.setdefault("height", row.height)


def frame_rate(unit: dict[str, Any]) -> dict[str, Any]:
    """A video as the manifest tells it; fps is unknown where the frames have no clock."""
    return {
        "name": unit["name"],
        "video": unit["video"],
        "frames": unit["samples"],
        "fps": frames_per_second(unit["samples"], unit.get("first_time"), unit.get("last_time")),
        "width": unit.get("width"),
        "height": unit.get("height"),
    }


def frames_per_second(frames: int, first_time: float | None, last_time: float | None) -> float | None:
    """The mean rate, to a millionth: times are sums of many rounded intervals."""
    if first_time is None or last_time is None or frames < 2 or not last_time > first_time:
        return None
    return round((frames - 1) / (last_time - first_time), 6)
