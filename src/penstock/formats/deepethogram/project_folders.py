"""DATA/<video>/: which file is the video, and which holds its labels.

DeepEthogram looks into the folder each time and takes a folder of frames before an HDF5 before a video file, so that a
converted video is used as soon as it is there. `prefer="converted"` does the same; `prefer="original"` takes the video
file. What record.yaml names decides between files of one kind; of a path that it holds only the last piece counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import DataError, Problem
from penstock.formats.deepethogram.project_settings import last_piece, read_mapping
from penstock.formats.paths import VIDEO_ENDINGS, natural
from penstock.formats.tables import TABLE_ENDINGS
from penstock.formats.videos.frame_folders import frame_files
from penstock.formats.videos.frame_hdf5 import HDF5_ENDINGS

RECORD = "record.yaml"
PREFERENCES = ("converted", "original")
_KINDS = {
    "converted": ("folder", "hdf5", ".avi", ".mp4", "file"),
    "original": (".avi", ".mp4", "file", "hdf5", "folder"),
}
# Words in the names of files that DeepEthogram keeps beside a video, and that hold no frames.
_RESULTS = ("output", "label", "score", "flow", "keypoint", "predict")


@dataclass(frozen=True)
class ProjectVideo:
    """One folder of the project: its video and its labels, as far as there are any, and what is wrong."""

    name: str
    video: Path | None
    labels: Path | None
    problems: tuple[Problem, ...]


def project_videos(data: Path, prefer: str) -> list[ProjectVideo]:
    """Every folder below DATA, in natural order."""
    folders = [path for path in data.iterdir() if path.is_dir() and not path.name.startswith(".")]
    return [_project_video(folder, prefer) for folder in sorted(folders, key=lambda path: natural(path.name))]


def _project_video(folder: Path, prefer: str) -> ProjectVideo:
    record, problems = _record(folder)
    entries = sorted((entry for entry in folder.iterdir() if not entry.name.startswith(".")), key=_by_name)
    labels = _chosen(_label_files(folder, entries), _named(record, "label"), folder.name + "_labels")
    ranked = _ranked(_videos(folder, entries), prefer, _named(record, "rgb"), folder.name)
    problems += _several(folder, labels, "label files", "Keep one of them")
    problems += _several(folder, ranked, "videos", f'prefer="{_other(prefer)}" decides the other way')
    if ranked and not ranked[0].exists():
        problems.append(_broken_link(ranked[0]))
        ranked = []
    elif not ranked:
        problems.append(_no_video(folder, record, entries, labels))
    return ProjectVideo(folder.name, ranked[0] if ranked else None, labels[0] if labels else None, tuple(problems))


def _by_name(path: Path) -> list[tuple[int, int, str]]:
    return natural(path.name)


def _other(prefer: str) -> str:
    return PREFERENCES[1 - PREFERENCES.index(prefer)]


def _record(folder: Path) -> tuple[dict[str, Any], list[Problem]]:
    """record.yaml, which a project can do without."""
    path = folder / RECORD
    if not path.is_file():
        return {}, []
    try:
        return read_mapping(path), []
    except DataError as error:
        remedy = "The folder is looked through instead; DeepEthogram writes the file again"
        return {}, [Problem(one.file, one.row, one.what, remedy, warning=True) for one in error.problems]


def _named(record: Mapping[str, Any], kind: str) -> str:
    """The file that a record calls its video or its labels; older ones hold a path, newer ones {all, default}."""
    found = record.get(kind)
    if isinstance(found, Mapping):
        found = found.get("default")
    return last_piece(found[0] if isinstance(found, list) and found else found)


# Videos


def _videos(folder: Path, entries: list[Path]) -> dict[Path, str]:
    """What may be the video, with its kind."""
    kinds = {entry: _kind(folder, entry) for entry in entries}
    return {entry: kind for entry, kind in kinds.items() if kind}


def _kind(folder: Path, entry: Path) -> str:
    if entry.is_dir():
        return "folder" if frame_files(entry) else ""
    ending = entry.suffix.lower()
    if ending in HDF5_ENDINGS:
        is_result = any(word in entry.stem.lower().removeprefix(folder.name.lower()) for word in _RESULTS)
        return "" if is_result else "hdf5"
    if ending not in VIDEO_ENDINGS:
        return ""
    return ending if ending in (".avi", ".mp4") else "file"


def _ranked(videos: Mapping[Path, str], prefer: str, recorded: str, name: str) -> list[Path]:
    kinds = _KINDS[prefer]

    def rank(path: Path) -> tuple[bool, int, bool, bool]:
        own = path.name if path.is_dir() else path.stem
        # A link that leads nowhere is taken only where nothing else is there.
        return not path.exists(), kinds.index(videos[path]), path.name != recorded, own != name

    return sorted(videos, key=rank)


# Labels


def _label_files(folder: Path, entries: list[Path]) -> list[Path]:
    endings = TABLE_ENDINGS | HDF5_ENDINGS
    files = [entry for entry in entries if entry.suffix.lower() in endings and not entry.is_dir()]
    return [file for file in files if _holds_labels(file.stem.lower().removeprefix(folder.name.lower()))]


def _holds_labels(rest: str) -> bool:
    return any(word in rest for word in ("label", "score")) and not any(word in rest for word in ("predict", "output"))


def _chosen(files: list[Path], recorded: str, usual: str) -> list[Path]:
    return sorted(files, key=lambda file: (file.name != recorded, file.stem != usual, file.suffix.lower() != ".csv"))


# Problems


def _several(folder: Path, found: list[Path], what: str, remedy: str) -> Iterator[Problem]:
    if len(found) > 1:
        others = ", ".join(path.name for path in found[1:])
        text = f"holds {len(found)} {what}; {found[0].name} is read and not {others}"
        yield Problem(folder.as_posix(), None, text, remedy, warning=True)


def _broken_link(path: Path) -> Problem:
    what = f"is a link to {path.readlink().as_posix()}, which is not there"
    return Problem(path.as_posix(), None, what, "Mount the disk that holds it, or copy the video here", unreadable=True)


def _no_video(folder: Path, record: Mapping[str, Any], entries: list[Path], labels: list[Path]) -> Problem:
    """A folder of the project without a video is an error; one that has nothing to do with it is left out."""
    named = _named(record, "rgb")
    if not record and not labels:
        what = "holds no video and is left out" if entries else "is empty and is left out"
        return Problem(folder.as_posix(), None, what, "Add its video, or remove the folder", warning=True)
    what = f"{named} of its {RECORD} is not there, nor is any other video" if named else "there is no video in it"
    return Problem(
        folder.as_posix(), None, what, "Copy the video into this folder, or remove the folder", unreadable=True
    )
