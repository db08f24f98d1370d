"""The videos of a DeepEthogram project with their labels and splits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.errors import DataError, Problem, one_of
from penstock.formats.deepethogram.hdf5_labels import read_hdf5_labels
from penstock.formats.deepethogram.project_folders import PREFERENCES, ProjectVideo, project_videos
from penstock.formats.deepethogram.project_settings import ProjectSettings, read_settings
from penstock.formats.deepethogram.project_splits import AUTO, read_splits
from penstock.formats.deepethogram.project_training import Taken
from penstock.formats.paths import PathLike
from penstock.formats.provenance import provenance
from penstock.formats.videos.frame_hdf5 import HDF5_ENDINGS
from penstock.formats.videos.frame_labels import NoLabels
from penstock.formats.videos.framing import DEFAULT_SIZE, make_framing
from penstock.formats.videos.label_matching import LabelSet, match_labels, unlabelled
from penstock.formats.videos.label_options import LabelOptions
from penstock.formats.videos.video_frames import VideoFrames, parts_of
from penstock.formats.videos.video_lists import NamedVideo
from penstock.storage.locations import refuses_urls


class DeepEthogram(VideoFrames):
    """Every frame of a DeepEthogram project, as `ps.Videos` gives it; one part for each video.

    `project` is the folder that holds project_config.yaml. The behaviours are its class_names, in their order. A video
    without labels is not labelled (−1); its frames can be used all the same. Keys and groups are the names of the
    folders below DATA, or what `group_from`, such as '{animal}_*', finds in them.

    `size`        "auto": the augs.resize of the project, else 224x224; None keeps frames as they are
    `split_file`  "auto": the split.yaml of the project; "none", or another file. Videos not in it are `unlisted`
    `prefer`      where a folder has several videos: "converted" (frames, then HDF5, as DeepEthogram does) or "original"
    """

    @refuses_urls()
    def __init__(
        self,
        project: PathLike,
        *,
        size: str | tuple[int, int] | None = AUTO,
        fit: str = "stretch",
        crop: Sequence[int] | str | None = None,
        group_from: str | None = None,
        split_file: PathLike | None = AUTO,
        prefer: str = "converted",
    ) -> None:
        one_of("prefer", prefer, PREFERENCES)
        settings = read_settings(project)
        found, problems = _with_video(settings, project_videos(settings.data, prefer))
        chosen = (settings.resize or DEFAULT_SIZE) if size == AUTO else size
        framing = make_framing(chosen, fit, crop)
        videos = [NamedVideo(one.name, one.video) for one in found if one.video is not None]
        labels = _labels(settings, found, videos)
        splits = read_splits(settings, split_file, [video.name for video in videos])
        parts, misnamed = parts_of(videos, framing, labels, group_from, splits.names)
        given = provenance(
            deepethogram=project, size=chosen, fit=fit, crop=crop, group_from=group_from, split_file=split_file
        )
        # Kept with the data, because whoever trains on a pack of it must not mirror left and right either.
        given |= provenance(flip=settings.training.value("flip"))
        remarks = _training_remarks(settings)
        super().__init__(parts, labels, [*problems, *remarks, *splits.problems, *misnamed], given)
        self.settings = settings


def _with_video(settings: ProjectSettings, found: list[ProjectVideo]) -> tuple[list[ProjectVideo], list[Problem]]:
    """The folders that have a video, and what is wrong with any; an error where none has one."""
    problems = [problem for one in found for problem in one.problems]
    usable = [one for one in found if one.video is not None]
    if not usable:
        what = "there is no video in any of its folders" if found else "there are no folders of videos in it"
        nothing = Problem(settings.data.as_posix(), None, what, "Add videos, or pass the folder that holds DATA")
        raise DataError([nothing, *(problem for problem in problems if not problem.warning)])
    return usable, problems


def _training_remarks(settings: ProjectSettings) -> list[Problem]:
    """The settings for training, which are no part of the data: how to keep them, and which cannot be kept."""
    config, training = settings.config.as_posix(), settings.training
    remarks = []
    if training.taken:
        names = ", ".join(f"{one.written} {one.value:g}" if _is_number(one) else one.written for one in training.taken)
        what = f"its settings for training are no part of the data: {names}"
        remedy = f"penstock recipe behaviour --from {settings.folder.as_posix()} writes a recipe with them"
        remarks.append(Problem(config, None, what, remedy, warning=True))
    if training.left:
        what = f"Penstock has no setting like {', '.join(training.left)}"
        remarks.append(Problem(config, None, what, "Training goes without them", warning=True))
    return remarks


def _is_number(one: Taken) -> bool:
    return isinstance(one.value, (int, float)) and not isinstance(one.value, bool)


def _labels(settings: ProjectSettings, found: list[ProjectVideo], videos: list[NamedVideo]) -> LabelSet:
    """The labels of every video by the behaviours of the project."""
    tables: dict[str, Any] = {}
    problems: list[Problem] = []
    for one in found:
        if one.labels is not None:
            try:
                tables[one.name] = _table(one.labels, settings.classes)
            except DataError as error:
                problems += error.problems
    if not tables:
        none = NoLabels(len(settings.classes))
        return LabelSet(settings.classes, (none,) * len(videos), (*problems, *map(unlabelled, videos)))
    matched = match_labels(tables, videos, LabelOptions(settings.classes))
    return LabelSet(matched.classes, matched.per_video, (*problems, *matched.problems))


def _table(path: Path, classes: tuple[str, ...]) -> Any:
    return read_hdf5_labels(path, classes) if path.suffix.lower() in HDF5_ENDINGS else path
