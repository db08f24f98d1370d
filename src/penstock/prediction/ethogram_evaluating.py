"""Scores of ethograms made by anything, from files: what `penstock evaluate FOLDER --truth LABELS` does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, Problem
from penstock.formats.videos.frame_labels import FrameLabels, NoLabels
from penstock.formats.videos.label_matching import match_labels
from penstock.formats.videos.label_options import LabelOptions
from penstock.formats.videos.video_lists import NamedVideo
from penstock.prediction.ethogram_reading import Predicted, read_predictions
from penstock.results.behaviour_scores import BehaviourScores, score_behaviours
from penstock.results.bouts import stop_times

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class ComparedEthograms:
    """Videos with predictions and labels of the same frames, and predictions that no labels are there for."""

    predicted: tuple[Predicted, ...]
    labels: tuple[NDArray[np.int8], ...]
    not_in_truth: tuple[str, ...]

    def scores(self) -> BehaviourScores:
        return _scores(self.predicted, self.labels)

    def table(self) -> pd.DataFrame:
        """One row for each video."""
        import pandas as pd

        rows = [_row(one, labels) for one, labels in zip(self.predicted, self.labels, strict=True)]
        return pd.DataFrame(rows)


def compare_ethograms(predictions: str | os.PathLike[str], truth: Any, options: LabelOptions) -> ComparedEthograms:
    """Read predictions and labels in any format that `Videos` reads; every problem is raised at once."""
    found = read_predictions(predictions)
    # Labels are found by the name of the video; which file it was is not known any more.
    videos = [NamedVideo(one.name, Path(one.file).with_name(f"{Path(one.name).name}.video")) for one in found]
    known = match_labels(truth, videos, replace(options, classes=found[0].behaviours))
    problems = [problem for problem in known.problems if not problem.warning]
    matched = [
        (one, labels) for one, labels in zip(found, known.per_video, strict=True) if not isinstance(labels, NoLabels)
    ]
    problems += [problem for one, labels in matched for problem in _misfits(one, labels)]
    if problems:
        raise DataError(problems)
    alone = tuple(one.name for one, labels in zip(found, known.per_video, strict=True) if isinstance(labels, NoLabels))
    arranged = [_in_order(one, known.classes) for one, _ in matched]
    return ComparedEthograms(tuple(arranged), tuple(labels.over(one.times_s) for one, labels in matched), alone)


def _misfits(one: Predicted, labels: FrameLabels) -> list[Problem]:
    end_s = float(stop_times(one.times_s)[-1]) if len(one.times_s) else float("nan")
    return labels.misfits(one.name, len(one.times_s), end_s)


def _in_order(one: Predicted, classes: Sequence[str]) -> Predicted:
    """With columns as the labels have them."""
    order = [one.behaviours.index(name) for name in classes]
    likely = None if one.probabilities is None else one.probabilities[:, order]
    return one._replace(behaviours=tuple(classes), present=one.present[:, order], probabilities=likely)


def _scores(predicted: Sequence[Predicted], labels: Sequence[NDArray[np.int8]]) -> BehaviourScores:
    """Without probabilities there is no order to go by, and no AUROC or average precision."""
    likely = [one.probabilities for one in predicted if one.probabilities is not None]
    has_order = len(likely) == len(predicted)
    present = np.concatenate([one.present for one in predicted])
    found = score_behaviours(
        np.concatenate(likely) if has_order else present.astype(np.float32),
        np.concatenate(labels),
        predicted[0].behaviours,
        thresholds=np.nan,
        predictions=present,
        frame_counts=[len(one.present) for one in predicted],
    )
    if has_order:
        return found
    unknown = np.full(len(found.behaviours), np.nan)
    return replace(found, auroc=unknown, average_precision=unknown)


def _row(one: Predicted, labels: NDArray[np.int8]) -> dict[str, Any]:
    scores = _scores([one], [labels])
    means = {name: scores.mean(name) for name in ("f1", "precision", "recall", "accuracy", "bout_f1")}
    labelled = int((labels >= 0).any(axis=1).sum())
    return {"video": one.name, "frames": len(labels), "labelled_frames": labelled, **means}
