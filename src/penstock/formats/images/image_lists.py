"""Which images there are, and what their folders, names or table say about them. Nothing is opened here.

pets/cat/1.jpg  pets/dog/2.jpg         class folders: classes are the folders' names, sorted
pets/train/cat/1.jpg  pets/val/…       the same, with a split
photos/cat.0.jpg  photos/dog.17.jpg    a name pattern
photos/1.jpg                           a plain folder: no labels
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, Problem, nearest
from penstock.formats.boxes.box_checks import sorted_labels
from penstock.formats.boxes.locating import no_images
from penstock.formats.paths import IMAGE_ENDINGS, natural
from penstock.formats.patterns import NamePattern
from penstock.storage.locations import readable_name

SPLIT_FOLDERS = frozenset({"train", "val", "valid", "validation", "test"})


@dataclass(frozen=True)
class ImageList:
    """Columns of equal length, one row per image; `labels` is None where there are none at all.

    A label is a number into `classes`, −1 where the image has a problem instead of a label.
    """

    files: tuple[str, ...]
    keys: tuple[str, ...]
    labels: NDArray[np.int64] | None = None
    classes: tuple[str, ...] = ()
    splits: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None
    problems: tuple[Problem, ...] = ()
    left_out: tuple[str, ...] = ()  # columns of a table that are not used


@dataclass
class _Named:
    """Images with the text of their label while they are collected."""

    files: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    splits: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def images_in(folder: str) -> tuple[list[str], list[str]]:
    """Paths of the images directly in a folder, in natural order, and its sub-folders, sorted; hidden ones left out."""
    images, folders = [], []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir():
                    folders.append(entry.name)
                elif os.path.splitext(entry.name)[1].lower() in IMAGE_ENDINGS:  # noqa: PTH122 - fast for 10⁶ names
                    images.append(entry.name)
    except OSError as error:
        raise DataError([Problem(folder, None, f"cannot be listed: {error.strerror}", "Check its rights")]) from error
    images.sort(key=natural)
    folders.sort()
    return [f"{folder}/{name}" for name in images], [f"{folder}/{name}" for name in folders]


def images_under(folder: str) -> list[str]:
    """Every image below a folder, those directly in it first."""
    images, folders = images_in(folder)
    return images + [image for inner in folders for image in images_under(inner)]


def plain_list(root: str) -> ImageList:
    """Every image below a folder, without labels."""
    files = images_under(root)
    if not files:
        raise no_images(root)
    return ImageList(tuple(files), _keys(files, root))


def named_list(root: str, pattern: NamePattern, classes: tuple[str, ...] | None) -> ImageList:
    """Every image below a folder, labelled by its name."""
    files = images_under(root)
    if not files:
        raise no_images(root)
    labels = [readable_name(pattern.value(os.path.basename(file)) or "") for file in files]  # noqa: PTH119 - fast for 10⁶ names
    problems = [
        Problem(file, None, f"its name does not fit the pattern {pattern.text!r}", "Rename it, or change the pattern")
        for file, label in zip(files, labels, strict=True)
        if not label
    ]
    return _labelled(_Named(files, labels, problems=problems), root, classes)


def folder_list(root: str, classes: tuple[str, ...] | None) -> ImageList:
    """Images labelled by the folder that they are in, at any depth below it."""
    loose, folders = images_in(root)
    found = _Named()
    for image in loose:
        what = "lies beside the class folders and has no class"
        found.problems.append(Problem(image, None, what, "Move it into one, or pass labels='none' for no labels"))
    for split, folder in _class_folders(folders):
        images = images_under(folder)
        found.files += images
        found.labels += [readable_name(os.path.basename(folder))] * len(images)  # noqa: PTH119 - as above
        found.splits += [split] * len(images)
        if not images:
            what = "the folder holds no images and is not a class"
            found.problems.append(Problem(folder, None, what, "Remove it, or add images", warning=True))
    if not found.files:
        raise no_images(root)
    return _labelled(found, root, classes)


def has_class_folders(root: str) -> bool:
    """Whether a folder has sub-folders with images in them."""
    _, folders = images_in(root)
    return any(next(_walk(folder), None) is not None for folder in folders)


def _walk(folder: str) -> Iterator[str]:
    images, folders = images_in(folder)
    yield from images
    for inner in folders:
        yield from _walk(inner)


def _class_folders(folders: list[str]) -> list[tuple[str, str]]:
    """Each class folder with its split; splits are folders called train, val or test that hold folders."""
    names = {os.path.basename(folder).lower() for folder in folders}  # noqa: PTH119 - as above
    if not names or not names <= SPLIT_FOLDERS:
        return [("", folder) for folder in folders]
    inner = {folder: images_in(folder)[1] for folder in folders}
    if not all(inner.values()):
        return [("", folder) for folder in folders]
    return [(Path(folder).name, below) for folder in folders for below in inner[folder]]


def _labelled(found: _Named, root: str, classes: tuple[str, ...] | None) -> ImageList:
    numbers, names, problems = number_labels(found.labels, classes, found.files)
    splits = tuple(found.splits) if any(found.splits) else None
    problems = [*found.problems, *problems]
    files = tuple(found.files)
    return ImageList(files, _keys(found.files, root), numbers, names, splits, problems=tuple(problems))


def number_labels(
    labels: list[str], classes: tuple[str, ...] | None, files: list[str], lines: list[int] | None = None
) -> tuple[NDArray[np.int64], tuple[str, ...], list[Problem]]:
    """Class numbers of labels, −1 for an empty or unknown one, and a problem for each unknown one."""
    names = classes or sorted_labels(set(labels) - {""})
    known = {name: number for number, name in enumerate(names)}
    numbers = np.array([known.get(label, -1) for label in labels], np.int64)
    unknown = {label: nearest(label, names) for label in set(labels) - known.keys() - {""}}
    problems = [
        Problem(
            files[row],
            lines[row] if lines is not None else None,
            f"the label {labels[row]!r} is not a known class",
            f"The classes are {', '.join(names[:10])}.{unknown[labels[row]]}",
        )
        for row in np.flatnonzero(numbers < 0).tolist()
        if labels[row]
    ]
    return numbers, names, problems


def _keys(files: list[str], root: str) -> tuple[str, ...]:
    start = len(root) + 1
    return tuple(readable_name(file[start:]) for file in files)
