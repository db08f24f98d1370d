"""Ethograms as a Run keeps them for its report: where behaviours are and were predicted, as stretches of seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.results.bouts import runs_of, stop_times
from penstock.results.ethograms import Ethogram

# More would make a page that nobody scrolls through.
SHOWN_VIDEOS = 12


def ethogram_details(ethograms: Sequence[Ethogram]) -> list[dict[str, Any]]:
    """For each of the first videos: its name, its length, and [start, stop] in seconds by behaviour."""
    return [_details(one) for one in ethograms[:SHOWN_VIDEOS]]


def _details(ethogram: Ethogram) -> dict[str, Any]:
    found: dict[str, Any] = {
        "video": ethogram.video,
        "frames": len(ethogram),
        "duration_s": round(ethogram.duration_s, 3),
        "predicted": _stretches(ethogram, ethogram.predictions == 1),
    }
    if ethogram.labels is not None:
        found["truth"] = _stretches(ethogram, ethogram.labels == 1)
        found["unlabelled"] = _stretches(ethogram, ethogram.labels < 0)
    return found


def _stretches(ethogram: Ethogram, present: NDArray[np.bool_]) -> dict[str, list[list[float]]]:
    """Seconds from the first frame."""
    begin = ethogram.times_s[0] if len(ethogram) else 0.0
    starts_s, stops_s = ethogram.times_s - begin, stop_times(ethogram.times_s) - begin
    found = {}
    for at, name in enumerate(ethogram.behaviours):
        runs = runs_of(present[:, at])
        pairs = np.stack([starts_s[runs.starts], stops_s[runs.stops - 1]], axis=1)
        found[name] = pairs.round(3).tolist()
    return found
