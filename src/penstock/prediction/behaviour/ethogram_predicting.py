"""`ps.predict` and `ps.evaluate` for behaviour: every video once through the networks."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.errors import DataError, OptionError, Problem, require
from penstock.formats.videos.framing import Framing, make_framing
from penstock.formats.videos.supplying import named_videos
from penstock.prediction.answering import AnswerOptions
from penstock.prediction.behaviour.decisions import Decisions, min_bouts
from penstock.prediction.behaviour.ethogram_output import Keeper, Memory, OneFile, PredictionFolder
from penstock.prediction.behaviour.options import EthogramOptions
from penstock.prediction.behaviour.video_jobs import VideoJob, jobs_of, names_one, videos_of
from penstock.prediction.behaviour.watching import Progress, TakingTurns, Watcher, shown
from penstock.prediction.models import Model
from penstock.results.ethogram_files import ENDINGS, HDF5_ENDINGS, check_ethogram_output
from penstock.results.ethograms import Ethogram
from penstock.samples import Store
from penstock.tasks.behaviour.frame_data import frame_labels
from penstock.tasks.data_checks import label_field
from penstock.tasks.labelled import LABEL, labelled
from penstock.wording import counted


def predict_ethograms(
    model: Model,
    data: Any,
    output: str | os.PathLike[str] | None,
    answering: AnswerOptions,
    given: dict[str, Any],
    on_problem: Callable[[Problem], None] | None = None,
    on_facts: Callable[[dict[str, Any]], None] | None = None,
) -> Ethogram | list[Ethogram] | Path:
    """The ethogram of a video, those of several as a list, or the path that they were written to."""
    options = EthogramOptions.of(given)
    model = with_min_bouts(model, options.min_bout_frames)
    jobs = jobs_of(data, framing_of(model, options))
    if output is None:
        with Memory() as memory:
            _watch(model, jobs, memory, answering, options, on_problem)
            _tell_facts(jobs, memory, on_facts)
        found = [memory.ethograms[job.name] for job in jobs if job.name in memory.ethograms]
        return found[0] if names_one(data) and found else found
    keeper = _keeper(Path(output), jobs)
    _watch(model, jobs, keeper, answering, options, on_problem)
    _tell_facts(jobs, keeper, on_facts)
    return Path(output)


def with_min_bouts(model: Model, given: Any) -> Model:
    """The model with other shortest bouts, if a user gives some."""
    return model if given is None else model.changed(min_bout_frames=min_bouts(given, model.classes))


def _tell_facts(jobs: list[VideoJob], keeper: Keeper, on_facts: Callable[[dict[str, Any]], None] | None) -> None:
    if on_facts is not None:
        counted = [keeper.decisions(job.name) for job in jobs]
        on_facts(Decisions.together(one for one in counted if one is not None).facts())


def framing_of(model: Model, options: EthogramOptions) -> Framing:
    """How frames are brought to the size of the model: as in its training, unless the user says otherwise."""
    task: Any = model.task
    trained = dict(model.meta.get("input") or {})
    fit, crop = options.fit or trained.get("fit") or "stretch", options.crop or trained.get("crop")
    return make_framing(tuple(task.image_size), fit, crop)


def _keeper(output: Path, jobs: list[VideoJob]) -> Keeper:
    if output.suffix.lower() not in ENDINGS:
        require("h5py", "formats", "Writing features of videos")
        return PredictionFolder(output)
    if len(jobs) != 1:
        raise OptionError(
            f"output={str(output)!r} is one file, and there are {counted(len(jobs), 'video')}. Name a folder."
        )
    if output.suffix.lower() in HDF5_ENDINGS:
        require("h5py", "formats", "Writing ethograms as HDF5")
    return OneFile(check_ethogram_output(output)[0])


def _watch(
    model: Model,
    jobs: list[VideoJob],
    keeper: Keeper,
    answering: AnswerOptions,
    options: EthogramOptions,
    on_problem: Callable[[Problem], None] | None,
) -> None:
    """All videos, dealt to the devices; a video that cannot be read does not stop the others."""
    failures: list[Problem] = []
    with shown(len(jobs), answering.progress) as progress:
        watchers = _watchers(model, keeper, answering, options, progress)
        turns = TakingTurns(jobs)
        if len(watchers) == 1:
            failures += watchers[0].watch(turns)
        else:
            with ThreadPoolExecutor(len(watchers), "penstock-device") as pool:
                waiting = [pool.submit(watcher.watch, turns) for watcher in watchers]
                failures += [problem for one in waiting for problem in one.result()]
    raises = bool(failures) and (answering.on_bad_sample == "raise" or len(failures) == len(jobs))
    if on_problem is not None:
        for problem in (problem for job in jobs for problem in keeper.problems(job.name)):
            if not raises or problem not in failures:
                on_problem(problem)
    if raises:
        raise DataError(failures)


def _watchers(
    model: Model, keeper: Keeper, answering: AnswerOptions, options: EthogramOptions, progress: Progress
) -> list[Watcher]:
    threads = answering.workers if isinstance(answering.workers, int) else None
    identity = identity_of(model)
    given = (keeper, options, identity, model.precision, threads, progress)
    return [Watcher(model.task, placed, *given) for placed in model.copies]


def identity_of(model: Model) -> str:
    """What changes with the weights and the settings of a model."""
    digest = hashlib.sha256(json.dumps(model.task.settings(), sort_keys=True, default=str).encode())
    for name, value in sorted(model.network.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


# `ps.evaluate` for behaviour: every video of labelled data is predicted, and its ethogram compared with the labels.


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
