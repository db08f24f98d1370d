"""Bouts: stretches of frames with one behaviour, from a matrix of 0 and 1.

A bout is the frames start ≤ n < stop. Short bouts are removed by this rule, for each behaviour on its own with its
shortest length L: for n = 1, 2, … L − 1, first every gap of n frames between two bouts is filled, then every bout of n
frames is dropped. Growing n lets single stray frames vanish before they could join into a bout. A bout that touches the
first or the last frame was cut off by the recording: nobody knows how long it is, so it is never dropped. The frames
before the first bout and after the last are no gap.

Background is where no other behaviour is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

BACKGROUND = "background"
BOUT_COLUMNS = ("video", "behaviour", "start_frame", "stop_frame", "start_s", "stop_s", "duration_s")

Numbers = NDArray[np.int64]
Binary = NDArray[np.int8]


class Runs(NamedTuple):
    """Stretches of ones: first frame of each, and the frame after its last."""

    starts: Numbers
    stops: Numbers

    @property
    def lengths(self) -> Numbers:
        return self.stops - self.starts


def runs_of(binary: NDArray[Any]) -> Runs:
    """The stretches where a vector is not 0, in order."""
    steps = np.diff((np.asarray(binary) != 0).astype(np.int8), prepend=0, append=0)
    return Runs(np.flatnonzero(steps == 1), np.flatnonzero(steps == -1))


def painted(runs: Runs, frames: int) -> Binary:
    """The vector of so many frames that these stretches came from."""
    steps = np.zeros(frames + 1, np.int8)
    steps[runs.starts] += 1
    steps[runs.stops] -= 1
    vector: Binary = np.cumsum(steps[:-1], dtype=np.int8)
    return vector


def without_short_runs(runs: Runs, min_frames: int, frames: int) -> Runs:
    """Gaps filled and short stretches dropped, by the rule of this module, in a recording of so many frames."""
    for length in range(1, min_frames):
        if not len(runs.starts):
            break
        apart = runs.starts[1:] - runs.stops[:-1] > length
        joined = Runs(runs.starts[np.append(True, apart)], runs.stops[np.append(apart, True)])
        kept = (joined.lengths > length) | (joined.starts == 0) | (joined.stops == frames)
        runs = Runs(joined.starts[kept], joined.stops[kept])
    return runs


def without_short_bouts(binary: NDArray[Any], min_frames: Sequence[int] | NDArray[Any]) -> Binary:
    """The matrix frames × behaviours without bouts that are shorter than the behaviour's shortest."""
    out: Binary = (np.asarray(binary) != 0).astype(np.int8)
    for column, shortest in enumerate(min_frames):
        if shortest > 1:
            out[:, column] = painted(without_short_runs(runs_of(out[:, column]), int(shortest), len(out)), len(out))
    return out


def background_of(others: NDArray[Any]) -> Binary:
    """1 where none of the other behaviours is."""
    none: Binary = (~(np.asarray(others) != 0).any(axis=1)).astype(np.int8)
    return none


def shortest_bouts(labels: Sequence[NDArray[Any]], percentile: float = 1.0) -> Numbers:
    """For each behaviour the length that all but this percentage of its labelled bouts reach.

    `labels` has a matrix for each video. A bout that touches the first or last frame of its video, or a frame without a
    label, was cut off: how long it is was not seen, so it is left out. 1 if no bout of a behaviour was seen whole.
    """
    count = labels[0].shape[1]
    return np.array([_shortest([matrix[:, column] for matrix in labels], percentile) for column in range(count)])


def _shortest(vectors: Sequence[NDArray[Any]], percentile: float) -> int:
    lengths = np.concatenate([_whole_bout_lengths(vector) for vector in vectors])
    return max(1, int(np.percentile(lengths, percentile))) if len(lengths) else 1


def _whole_bout_lengths(vector: NDArray[Any]) -> Numbers:
    """Lengths of the bouts whose first and last frame were both seen."""
    runs = runs_of(vector == 1)
    known = np.concatenate([[False], vector >= 0, [False]])
    whole = known[runs.starts] & known[runs.stops + 1]
    lengths: Numbers = runs.lengths[whole]
    return lengths


def fill_emptied(present: NDArray[Any], emptied: NDArray[np.bool_], probabilities: NDArray[Any]) -> Binary:
    """Frames that lost their only behaviour get that of a neighbour: of the bouts before and after each stretch, the
    one that is more likely in it."""
    out: Binary = np.array(present, np.int8)
    runs = runs_of(emptied)
    for start, stop in zip(runs.starts.tolist(), runs.stops.tolist(), strict=True):
        sides = [frame for frame in (start - 1, stop) if 0 <= frame < len(out)]
        candidates = [int(out[frame].argmax()) for frame in sides if out[frame].any()]
        if candidates:
            out[start:stop, max(candidates, key=probabilities[start:stop].mean(axis=0).__getitem__)] = 1
    return out


def stop_times(times_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """When each frame gives way to the next; the last one is shown as long as frames usually are."""
    if not len(times_s):
        return times_s
    usual_s = float(np.median(np.diff(times_s))) if len(times_s) > 1 else 0.0
    return np.append(times_s[1:], times_s[-1] + usual_s)


def bouts_table(
    binary: NDArray[Any], behaviours: Sequence[str], times_s: NDArray[np.float64], video: str = ""
) -> pd.DataFrame:
    """One row for each bout, by start; stop_frame and stop_s are exclusive. Background is no bout."""
    import pandas as pd

    ends_s = stop_times(times_s)
    found = [(name, runs_of(binary[:, at])) for at, name in enumerate(behaviours) if name != BACKGROUND]
    starts = np.concatenate([np.zeros(0, np.int64), *(runs.starts for _, runs in found)])
    stops = np.concatenate([np.zeros(0, np.int64), *(runs.stops for _, runs in found)])
    names = [name for name, runs in found for _ in range(len(runs.starts))]
    start_s, stop_s = times_s[starts], ends_s[stops - 1]
    values = (video, pd.Series(names, dtype="str"), starts, stops, start_s, stop_s, stop_s - start_s)
    table = pd.DataFrame(dict(zip(BOUT_COLUMNS, values, strict=True)))
    return table.sort_values(["start_frame", "stop_frame"], kind="stable", ignore_index=True)
