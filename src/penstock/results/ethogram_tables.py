"""Tables that are made of an ethogram: its summary, DeepEthogram's rows, and what a Run keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from penstock.results.bouts import BACKGROUND, runs_of, stop_times
from penstock.results.ethograms import Ethogram

if TYPE_CHECKING:
    import pandas as pd

    from penstock.results.ethograms import Ethogram


NO_SUBJECT = "No focal subject"


def summary_table(ethogram: Ethogram) -> pd.DataFrame:
    """One row for each behaviour; a mean length is NaN where there is no bout.

    `changed_frames` are those in which the rule of shortest bouts changed the answer.
    """
    import pandas as pd

    shown_s = stop_times(ethogram.times_s) - ethogram.times_s
    runs = [runs_of(ethogram.predictions[:, at]) for at in range(len(ethogram.behaviours))]
    seconds = np.array([shown_s[present == 1].sum() for present in ethogram.predictions.T])
    frames = ethogram.predictions.sum(axis=0, dtype=np.int64)
    counts = np.array([len(some.starts) for some in runs])
    means = [(total / count if count else float("nan")) for total, count in zip(seconds, counts, strict=True)]
    whole = ethogram.duration_s
    share = seconds / whole if whole else np.full(len(seconds), np.nan)
    # To the microsecond: sums of times have noise in their last digits.
    return pd.DataFrame(
        {
            "video": ethogram.video,
            "behaviour": list(ethogram.behaviours),
            "frames": frames,
            "time_s": seconds.round(6),
            "share": share.round(6),
            "bouts": counts,
            "mean_bout_s": np.round(means, 6),
            "changed_frames": ethogram.changed_frames,
        }
    )


def label_table(ethogram: Ethogram) -> pd.DataFrame:
    """0 and 1 as DeepEthogram keeps labels and predictions: frame numbers as the index, background first."""
    import pandas as pd

    order = sorted(range(len(ethogram.behaviours)), key=lambda at: ethogram.behaviours[at] != BACKGROUND)
    names = [ethogram.behaviours[at] for at in order]
    table = pd.DataFrame(ethogram.predictions[:, order], columns=names)
    if BACKGROUND not in names:
        table.insert(0, BACKGROUND, (~table.any(axis=1)).astype(np.int8))
    return table


def boris_table(ethogram: Ethogram) -> pd.DataFrame:
    """A START and a STOP for each bout, in the order of time, with the columns that BORIS exports."""
    import pandas as pd

    bouts = ethogram.bouts()
    events = pd.DataFrame(
        {
            "Time": bouts[["start_s", "stop_s"]].to_numpy().reshape(-1),
            "Behavior": bouts["behaviour"].repeat(2).to_numpy(),
            "Status": ["START", "STOP"] * len(bouts),
        }
    ).sort_values("Time", kind="stable", ignore_index=True)
    return pd.DataFrame(
        {
            "Time": events["Time"].map("{:.3f}".format),
            "Media file path": ethogram.name,
            "Total length": f"{ethogram.duration_s:.3f}",
            "FPS": f"{_frames_per_second(ethogram):.3f}",
            "Subject": NO_SUBJECT,
            "Behavior": events["Behavior"],
            "Behavioral category": "",
            "Comment": "",
            "Status": events["Status"],
        }
    )


def _frames_per_second(ethogram: Ethogram) -> float:
    """The mean rate; NaN where the video has no clock."""
    span_s = float(ethogram.times_s[-1] - ethogram.times_s[0]) if len(ethogram) else 0.0
    return (len(ethogram) - 1) / span_s if span_s > 0 else float("nan")


# Ethograms as a Run keeps them for its report: where behaviours are and were predicted, as stretches of seconds.


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
