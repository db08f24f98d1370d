"""Which videos are meant: files, folders of numbered frames, HDF5 files; each with a name that no other has."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import DataError, Problem
from penstock.formats.paths import VIDEO_ENDINGS, PathLike, expand, files_below, natural
from penstock.formats.videos.frame_folders import FrameFolder, frame_files
from penstock.formats.videos.frame_hdf5 import HDF5_ENDINGS, FrameHdf5
from penstock.formats.videos.framing import Framing
from penstock.formats.videos.pictures import Footage
from penstock.formats.videos.video_cursors import Cursors
from penstock.formats.videos.video_files import VideoFile
from penstock.storage.locations import readable_name

# What DeepEthogram writes beside its videos, which holds results and no frames.
_NO_VIDEO = ("_outputs", "_labels", "_scores")


@dataclass(frozen=True)
class NamedVideo:
    """A video and its name in keys, groups and messages: the shortest that is unique."""

    name: str
    path: Path

    @property
    def stem(self) -> str:
        return self.path.name if self.path.is_dir() else self.path.stem


def list_videos(videos: PathLike | Sequence[PathLike]) -> list[NamedVideo]:
    """A path, pattern, folder or list of these as videos, in order, each once."""
    paths = list(dict.fromkeys(path for given in expand(videos) for path in _inside(given)))
    return [NamedVideo(readable_name(name), path) for name, path in zip(_names(paths), paths, strict=True)]


def open_footage(path: Path, framing: Framing, cursors: Cursors) -> Footage:
    """The reader for a kind of video; nothing is opened yet."""
    if path.is_dir():
        return FrameFolder(path, framing)
    if path.suffix.lower() in HDF5_ENDINGS:
        return FrameHdf5(path, framing)
    return VideoFile(path, framing, cursors)


def _inside(path: Path) -> list[Path]:
    """The videos that a path stands for: itself, or those below a folder."""
    if not path.is_dir():
        return [path]
    files = [file for file in files_below(path, VIDEO_ENDINGS | HDF5_ENDINGS) if not file.stem.endswith(_NO_VIDEO)]
    if files:
        return files
    folders = [Path(here) for here, _, _ in os.walk(path) if frame_files(Path(here))]
    if not folders:
        what = "the folder holds no video, no numbered frames and no HDF5 of frames"
        raise DataError([Problem(path.as_posix(), None, what, f"Endings: {', '.join(sorted(VIDEO_ENDINGS))}")])
    return sorted(folders, key=lambda folder: natural(folder.as_posix()))


def _names(paths: list[Path]) -> list[str]:
    """Stems where they differ, else paths from the common folder, else those with their endings."""
    stems = [path.name if path.is_dir() else path.stem for path in paths]
    if len(set(stems)) == len(stems):
        return stems
    folder = os.path.commonpath([path.absolute().parent for path in paths])
    whole = [path.absolute().relative_to(folder).as_posix() for path in paths]
    short = [name if path.is_dir() else name.removesuffix(path.suffix) for name, path in zip(whole, paths, strict=True)]
    counts = Counter(short)
    return [name if counts[name] == 1 else full for name, full in zip(short, whole, strict=True)]
