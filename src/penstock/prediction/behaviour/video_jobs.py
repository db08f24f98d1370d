"""Which videos are to be looked at: files, folders of frames, HDF5, patterns and lists of these; packs and Sources."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from penstock.errors import DataError, OptionError, Problem
from penstock.flow.making.clips import VideoRows, rows_of_videos
from penstock.formats.videos.frame_supplies import StoredVideo, Supply
from penstock.formats.videos.framing import Framing
from penstock.formats.videos.supplying import named_videos, state_of, supply_of
from penstock.opening import kind_of
from penstock.opening import open as open_any
from penstock.prediction.inputs import are_in_memory
from penstock.samples import Source, Store, as_store
from penstock.tasks.behaviour.frame_data import video_name, video_ranges

PACK = "Pack"


@dataclass(frozen=True)
class VideoJob:
    """One video: its name, which no other has, what tells that it changed, and how its frames are had."""

    name: str
    file: str
    state: tuple[Any, ...]
    supply: Callable[[], Supply]


def jobs_of(data: Any, framing: Framing) -> list[VideoJob]:
    """The videos that a user means, in order."""
    if isinstance(data, Source):
        return _stored(as_store(data), framing)
    if are_in_memory(data):
        what = "a behaviour model needs videos, and images in memory have no frame times"
        raise OptionError(f"{what}. Pass the path of a video or of a folder of numbered frames, or a pack.")
    if isinstance(data, (str, os.PathLike)):
        if Path(data).exists() and kind_of(data) == PACK:
            source: Store = open_any(data)
            return _stored(source, framing)
        return _files(data, framing)
    if isinstance(data, Sequence):
        return _files(data, framing)
    raise OptionError(f"data must be a path, a list of paths, a pack or a Source, not {type(data).__name__}.")


def names_one(data: Any) -> bool:
    """Whether a user means one video, and so expects one answer."""
    return isinstance(data, (str, os.PathLike)) and Path(data).is_file()


def _files(data: Any, framing: Framing) -> list[VideoJob]:
    videos = named_videos(data)
    if not videos:
        raise DataError([Problem(str(data), None, "there is no video", "Name a video, a folder of them, or a pack")])
    return [
        VideoJob(video.name, video.path.as_posix(), (*state_of(video), framing), partial(supply_of, video, framing))
        for video in videos
    ]


def _stored(source: Store, framing: Framing) -> list[VideoJob]:
    state = (source.kind.__name__, source.fingerprint() or "", len(source), framing)
    place = source.kind.__name__ if source.path is None else str(source.path)
    return [
        VideoJob(name, f"{place}#{name}", (*state, name), partial(_stored_video, source, rows, name, framing))
        for name, rows in videos_of(source)
    ]


def videos_of(source: Store) -> list[tuple[str, VideoRows]]:
    """The videos of a pack or another Source: a name that no other has, and the samples of its frames."""
    ranges = video_ranges(source)
    names = [video_name(source, frames.start) for frames in ranges]
    twice = Counter(names)
    named = [name if twice[name] == 1 else f"{name}-{number}" for number, name in enumerate(names)]
    return list(zip(named, rows_of_videos(source, ranges), strict=True))


def _stored_video(source: Store, rows: VideoRows, name: str, framing: Framing) -> Supply:
    return StoredVideo(source, rows.indices, name, framing, rows.is_stored)
