"""split.yaml: which videos train, validate and test.

A video belongs to one split. One that stands in several stays in the first of train, val and test, so that nothing is
tested on what it was trained with; one that stands in none is kept apart as `unlisted`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from penstock.errors import DataError, Problem, nearest
from penstock.formats.deepethogram.project_settings import ProjectSettings, last_piece, read_mapping
from penstock.formats.paths import PathLike

AUTO = "auto"
NONE = "none"
UNLISTED = "unlisted"
SPLIT_FILE = "split.yaml"
_ORDER = ("train", "val", "test")


class Splits(NamedTuple):
    """The split of each video, or None where the project has no split."""

    names: list[str] | None
    problems: list[Problem]


def read_splits(settings: ProjectSettings, split_file: PathLike | None, videos: Sequence[str]) -> Splits:
    """The split of each of these videos."""
    path = _split_path(settings, split_file)
    if path is None:
        return Splits(None, [])
    try:
        written = read_mapping(path)
    except DataError as error:
        return Splits(None, list(error.problems))
    listed, problems = _listed(path, written)
    known = [name for name in videos if name in listed]
    problems += _strangers(path, listed, videos)
    if not known:
        what = "names none of the videos; they are split as packing does"
        return Splits(
            None, [*problems, Problem(path.as_posix(), None, what, "Write the names of folders", warning=True)]
        )
    problems += [_unlisted(path, name) for name in videos if name not in listed]
    problems += [_twice(path, name, listed[name]) for name in known if len(listed[name]) > 1]
    return Splits([listed[name][0] if name in listed else UNLISTED for name in videos], problems)


def _split_path(settings: ProjectSettings, split_file: PathLike | None) -> Path | None:
    """The file that the user names; else that of the project, which may be a path of another machine; else DATA's."""
    if split_file is None or split_file == NONE:
        return None
    if split_file != AUTO:
        return Path(split_file)
    names = [name for name in (settings.split_file, SPLIT_FILE) if name]
    places = [folder / name for name in names for folder in (settings.data, settings.folder)]
    return next((place for place in places if place.is_file()), None)


def _listed(path: Path, written: dict[str, object]) -> tuple[dict[str, list[str]], list[Problem]]:
    """The splits of every video that the file names, train before val before test."""
    listed: dict[str, list[str]] = {}
    problems = []
    for split in sorted(
        written.keys() - {"metadata"}, key=lambda name: (_ORDER.index(name) if name in _ORDER else 3, name)
    ):
        names = written[split]
        if names is None:
            continue
        if not isinstance(names, list) or not all(isinstance(name, str | int) for name in names):
            problems.append(Problem(path.as_posix(), None, f"{split} is not a list of videos", "Write one name a line"))
            continue
        for name in names:
            own = listed.setdefault(last_piece(str(name)), [])
            if split not in own:
                own.append(split)
    return listed, problems


def _strangers(path: Path, listed: dict[str, list[str]], videos: Sequence[str]) -> list[Problem]:
    return [
        Problem(
            path.as_posix(),
            None,
            f"{splits[0]} names {name!r}, which is no video of the project",
            f"Remove it, or correct it.{nearest(name, videos)}",
            warning=True,
        )
        for name, splits in listed.items()
        if name not in videos
    ]


def _unlisted(path: Path, name: str) -> Problem:
    what = f"{name} is in no split; its frames are kept apart as {UNLISTED!r}"
    return Problem(path.as_posix(), None, what, 'Add it to one, or pass split_file="none" to split anew', warning=True)


def _twice(path: Path, name: str, splits: list[str]) -> Problem:
    places = " and in ".join(splits)
    what = f"{name} is in {places}, so that scores would be measured on training data; it is kept in {splits[0]} only"
    return Problem(path.as_posix(), None, what, 'Keep it in one, or pass split_file="none" to split anew', warning=True)
