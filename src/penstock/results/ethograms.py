"""The ethogram of one video: how likely each behaviour is in each frame, and what is taken to be there.

From probabilities to predictions:

| step       | several behaviours at a time             | one at a time (`exclusive`)                                |
|------------|------------------------------------------|------------------------------------------------------------|
| present    | probability ≥ threshold                  | the most likely; thresholds are not looked at              |
| bouts      | short gaps filled, short bouts dropped (`bouts.py`); background takes no part                         |
| background | where none of the others is; its own     | where filling gave a frame two, the more likely one stays; |
|            | probability is not looked at             | frames of a dropped bout get the more likely neighbour     |
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError, Problem
from penstock.results.bouts import (
    BACKGROUND,
    Binary,
    background_of,
    bouts_table,
    fill_emptied,
    stop_times,
    without_short_bouts,
)
from penstock.wording import counted

if TYPE_CHECKING:
    import pandas as pd

    from penstock.results.behaviour_scores import BehaviourScores
    from penstock.results.feature_files import FeatureFile

Reals = NDArray[np.float32]
# So close to a threshold, other rounding (another precision, another compression of the frames) may change an answer.
NEAR = 0.02


@dataclass(frozen=True, eq=False)
class Ethogram:
    """One video's behaviours over time.

    behaviours        names, in the order of the columns; `background` may be one of them
    probabilities     frames × behaviours, 0 to 1; a frame that could not be decoded keeps its row
    thresholds        one for each behaviour, or one for all
    min_bout_frames   the shortest bout of each behaviour, or of all; 1 keeps every frame as it is
    times_s           when each frame is shown
    name              the video: its path or name
    problems          what was wrong with the video, such as frames that could not be decoded
    exclusive         one behaviour at a time
    labels            frames × behaviours of 1, 0, and −1 for not labelled, where the truth is known
    """

    behaviours: tuple[str, ...]
    probabilities: Reals
    thresholds: Reals
    min_bout_frames: NDArray[np.int64]
    times_s: NDArray[np.float64]
    name: str
    problems: Sequence[Problem] = field(default_factory=list)
    exclusive: bool = False
    labels: NDArray[np.int8] | None = None

    def __post_init__(self) -> None:
        count = len(self.behaviours)
        kept = {
            "behaviours": tuple(self.behaviours),
            "probabilities": np.asarray(self.probabilities, np.float32),
            "thresholds": _for_each("thresholds", self.thresholds, np.float32, count),
            "min_bout_frames": _for_each("min_bout_frames", self.min_bout_frames, np.int64, count),
            "times_s": np.asarray(self.times_s, np.float64),
            "labels": None if self.labels is None else np.asarray(self.labels, np.int8),
        }
        for name, value in kept.items():
            object.__setattr__(self, name, value)
        _check(self)

    def __len__(self) -> int:
        return len(self.probabilities)

    def __repr__(self) -> str:
        return f"Ethogram({self.name!r}, {counted(len(self), 'frame')}, behaviours={self.behaviours})"

    @property
    def video(self) -> str:
        """The file name of the video, as tables show it."""
        return self.name.replace("\\", "/").rsplit("/", 1)[-1]

    @property
    def duration_s(self) -> float:
        """From the first frame to the end of the last."""
        return float(stop_times(self.times_s)[-1] - self.times_s[0]) if len(self) else 0.0

    @functools.cached_property
    def predictions(self) -> Binary:
        """Frames × behaviours of 0 and 1, after thresholds, shortest bouts and the rule for background."""
        out = self._decide(self.min_bout_frames)
        out.setflags(write=False)
        return out

    @functools.cached_property
    def changed_frames(self) -> NDArray[np.int64]:
        """For each behaviour, in how many frames the rule of shortest bouts changed the answer."""
        changed: NDArray[np.int64] = self._changed_by_bouts.sum(axis=0, dtype=np.int64)
        return changed

    @property
    def changed_frame_count(self) -> int:
        """In how many frames the rule of shortest bouts changed an answer."""
        return int(self._changed_by_bouts.any(axis=1).sum())

    @property
    def _changed_by_bouts(self) -> NDArray[np.bool_]:
        if (self.min_bout_frames <= 1).all():
            return np.zeros(self.probabilities.shape, bool)
        changed: NDArray[np.bool_] = self.predictions != self._decide(np.ones_like(self.min_bout_frames))
        return changed

    @property
    def near_threshold(self) -> NDArray[np.int64]:
        """For each behaviour, in how many frames its probability lies within NEAR of its threshold; with one behaviour
        at a time, frames that it wins with less than that."""
        counts = np.zeros(len(self.behaviours), np.int64)
        if self.exclusive and len(self.behaviours) > 1:
            second, first = np.partition(self.probabilities, -2, axis=1)[:, -2:].T
            np.add.at(counts, self.probabilities.argmax(axis=1)[first - second < NEAR], 1)
        elif not self.exclusive:
            counts += (np.abs(self.probabilities - self.thresholds) < NEAR).sum(axis=0)
            counts[[name == BACKGROUND for name in self.behaviours]] = 0  # its probability is not looked at
        return counts

    def _decide(self, min_bout_frames: NDArray[np.int64]) -> Binary:
        behaving = [at for at, name in enumerate(self.behaviours) if name != BACKGROUND]
        before = self._present()
        out = before.copy()
        out[:, behaving] = without_short_bouts(before[:, behaving], min_bout_frames[behaving])
        if self.exclusive:
            return self._one_at_a_time(out, before, behaving)
        if BACKGROUND in self.behaviours:
            out[:, self.behaviours.index(BACKGROUND)] = background_of(out[:, behaving])
        return out

    def _one_at_a_time(self, out: Binary, before: Binary, behaving: list[int]) -> Binary:
        """Exactly one behaviour in each frame, none of which was found nowhere near it."""
        out[:, behaving] = _more_likely(out[:, behaving], self.probabilities[:, behaving])
        rest = [at for at in range(len(self.behaviours)) if at not in behaving]
        out[:, rest] = before[:, rest] & background_of(out[:, behaving])[:, None]
        emptied: NDArray[np.bool_] = background_of(out) == 1
        return fill_emptied(out, emptied, self.probabilities)

    def _present(self) -> Binary:
        if not self.exclusive:
            return (self.probabilities >= self.thresholds).astype(np.int8)
        present = np.zeros(self.probabilities.shape, np.int8)
        present[np.arange(len(self)), self.probabilities.argmax(axis=1)] = 1
        return present

    def table(self) -> pd.DataFrame:
        """One row for each frame: video, frame, time_s, 0 or 1 for each behaviour, then its probability."""
        return self.rows(slice(None))

    def rows(self, frames: slice) -> pd.DataFrame:
        """The rows of some frames of the table."""
        import pandas as pd

        numbers = np.arange(*frames.indices(len(self)))
        present, likely = self.predictions[frames], self.probabilities[frames]
        columns: dict[str, Any] = {"video": self.video, "frame": numbers, "time_s": self.times_s[frames]}
        columns |= {name: present[:, at] for at, name in enumerate(self.behaviours)}
        columns |= {f"{name}_probability": likely[:, at] for at, name in enumerate(self.behaviours)}
        return pd.DataFrame(columns)

    def bouts(self) -> pd.DataFrame:
        """One row for each bout: video, behaviour, start and stop (exclusive) in frames and seconds, duration."""
        return bouts_table(self.predictions, self.behaviours, self.times_s, self.video)

    def summary(self) -> pd.DataFrame:
        """One row for each behaviour: frames and seconds in it, its share, number and mean length of bouts."""
        from penstock.results.ethogram_tables import summary_table

        return summary_table(self)

    def scores(self) -> BehaviourScores:
        """How well the predictions agree with the labels."""
        from penstock.results.behaviour_scores import score_ethograms

        return score_ethograms([self])

    def save(
        self,
        path: str | os.PathLike[str],
        layout: str | None = None,
        *,
        logits: NDArray[Any] | None = None,
        features: FeatureFile | None = None,
        features_group: str = "features",
    ) -> Path:
        """Write .csv, .parquet or .h5; the file appears when it is complete.

        layout           of tables: "deepethogram" (0 and 1 alone, the default of .csv), "tidy" (with time and
                         probability, the default of .parquet), "bouts", "boris" (tabular events), "summary"
        logits           for .h5: those that the probabilities were made of
        features         for .h5: what was gathered frame by frame, as group `features_group`
        """
        from penstock.results.ethogram_files import save_ethogram

        return save_ethogram(self, path, layout, logits, features, features_group)


def _for_each(name: str, value: Any, kind: Any, count: int) -> NDArray[Any]:
    """One value for each behaviour, from one or as many."""
    given = np.asarray(value, kind)
    if given.shape not in ((), (count,)):
        raise OptionError(
            f"{name} has {counted(given.size, 'value')} for {counted(count, 'behaviour')}. "
            f"Give one for each, or one for all."
        )
    return np.broadcast_to(given, (count,))


def _check(ethogram: Ethogram) -> None:
    """Refuse what would shift or hide frames."""
    frames, count = len(ethogram.times_s), len(ethogram.behaviours)
    shapes = {"probabilities": ethogram.probabilities, "labels": ethogram.labels}
    for name, values in shapes.items():
        if values is not None and values.shape != (frames, count):
            expected = f"{counted(frames, 'frame')} × {counted(count, 'behaviour')}"
            raise OptionError(f"{name} of {ethogram.name} have the shape {values.shape}, expected {expected}.")
    if len(set(ethogram.behaviours)) < count:
        raise OptionError(f"behaviours={ethogram.behaviours} has a name twice.")
    bad = np.flatnonzero(~((ethogram.probabilities >= 0) & (ethogram.probabilities <= 1)).all(axis=1))
    if len(bad):
        values = ethogram.probabilities[bad[0]].tolist()
        raise OptionError(f"probabilities of {ethogram.name} in frame {bad[0]} are {values}, expected 0 to 1.")
    if (np.diff(ethogram.times_s) < 0).any():
        raise OptionError(f"times_s of {ethogram.name} go back. Give the frames in the order they are shown.")


def _more_likely(present: Binary, probabilities: Reals) -> Binary:
    """At most one behaviour in each frame."""
    best = np.where(present == 1, probabilities, -1).argmax(axis=1)
    only = np.zeros_like(present)
    only[np.arange(len(present)), best] = 1
    return only * present
