"""`ps.evaluate` for behaviour: every video of labelled data is predicted, and its ethogram compared with the labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.errors import DataError, Problem
from penstock.formats.videos.supplying import named_videos
from penstock.prediction.answering import AnswerOptions
from penstock.prediction.behaviour.ethogram_predicting import predict_ethograms
from penstock.prediction.behaviour.video_jobs import videos_of
from penstock.prediction.models import Model
from penstock.results.ethograms import Ethogram
from penstock.samples import Store
from penstock.tasks.behaviour.frame_data import frame_labels
from penstock.tasks.data_checks import label_field
from penstock.tasks.labelled import LABEL, labelled
from penstock.wording import counted

MEANS = ("f1", "precision", "recall", "accuracy", "bout_f1")


def labelled_ethograms(
    model: Model, source: Store, answering: AnswerOptions, videos: Any = None, **given: Any
) -> list[Ethogram]:
    """The ethograms of all videos of a source, with its labels in the order of the model's behaviours.

    With `videos`, frames come from these files, each of which is found by the name that it has in the source.
    """
    task: Any = model.task
    data = source if videos is None else _files_of(source, videos)
    found: Any = predict_ethograms(model, data, None, answering, given)
    ethograms = {one.name: one for one in found}
    labels = frame_labels(_view(task, source), LABEL)
    return [
        replace(ethograms[name], labels=rows.spread(labels, missing=-1)[: len(ethograms[name])])
        for name, rows in videos_of(source)
        if name in ethograms
    ]


def _files_of(source: Store, videos: Any) -> list[Path]:
    """The file of every video of a source; one that is missing, or has another number of frames, is a problem."""
    there = {video.name: video.path for video in named_videos(videos)}
    problems = [
        Problem(
            name,
            None,
            f"it is not among {counted(len(there), 'video')} that you named",
            "Name the folder it was packed from",
        )
        for name, _ in videos_of(source)
        if name not in there
    ]
    if problems:
        raise DataError(problems)
    return [there[name] for name, _ in videos_of(source)]


def _view(task: Any, source: Store) -> Store:
    """The source with labels as the task numbers them."""
    label = label_field(source, task.label, "labels")
    if label is None:
        raise DataError([Problem(source.kind.__name__, None, "it has no labels", "Pack the videos with their labels")])
    return labelled(source, task.image, label, task.behaviours)


def row_of(ethogram: Ethogram) -> dict[str, Any]:
    """What a table of videos says of one."""
    scores = ethogram.scores()
    known = 0 if ethogram.labels is None else int((ethogram.labels >= 0).any(axis=1).sum())
    means = {name: scores.mean(name) for name in MEANS}
    return {"video": ethogram.name, "frames": len(ethogram), "labelled_frames": known, **means}
