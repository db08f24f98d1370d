"""Which image of the truth a prediction is about: by as much of its path as both of them write."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from penstock.errors import DataError, Problem
from penstock.formats.boxes.rows import ImageName

_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{1,4}$")
Address = tuple[str, ...]


class ImageNames:
    """The images of the truth; each is found by the name that is written for it, or by that of its file of boxes."""

    def __init__(self, images: Sequence[ImageName]) -> None:
        self.images = images
        self._by_stem: dict[str, dict[int, list[Address]]] = defaultdict(dict)
        for number, image in enumerate(images):
            for address in addresses(image):
                self._by_stem[_stem(address[0])].setdefault(number, []).append(address)

    def find(self, image: ImageName) -> list[int]:
        """The images that it may be: one, none, or several that no more of the path tells apart."""
        for address in addresses(image):
            found = self._by_stem.get(_stem(address[0]))
            if found:
                closeness = {number: max(_closeness(address, other) for other in found[number]) for number in found}
                closest = max(closeness.values())
                return [number for number, value in closeness.items() if value == closest]
        return []


def addresses(image: ImageName) -> list[Address]:
    """Names from the last to the first folder: of the image as written, and of the file of boxes about it."""
    if image.file is not None:
        return [image.file.parts[::-1]]
    names = [name for name in (image.name.replace("\\", "/"), image.stem) if name]
    return list(dict.fromkeys((image.folder / name).parts[::-1] for name in names))


def written(image: ImageName) -> str:
    """The name of an image as users know it."""
    return image.name or image.stem or (str(image.file) if image.file else "")


def same_images(predicted: Sequence[ImageName], true: Sequence[ImageName], table: str) -> list[int | None]:
    """For each image with predictions the one of the truth that it is, None for an image that the truth has not."""
    names = ImageNames(true)
    found: list[int | None] = []
    taken: dict[int, ImageName] = {}
    problems: list[Problem] = []
    for image in predicted:
        candidates = names.find(image)
        if len(candidates) > 1:
            problems.append(_ambiguous(table, image, [true[number] for number in candidates]))
        elif candidates and taken.setdefault(candidates[0], image) != image:
            problems.append(_twice(table, image, taken[candidates[0]], true[candidates[0]]))
        found.append(candidates[0] if len(candidates) == 1 else None)
    if problems:
        raise DataError(problems)
    if predicted and all(number is None for number in found):
        raise DataError([_strangers(table, predicted[0], true[0])])
    return found


def _stem(name: str) -> str:
    return _ENDING.sub("", name)


def _closeness(one: Address, other: Address) -> tuple[int, bool]:
    """How many folders agree, counted from the image; then whether the ending does."""
    agreeing = 0
    for mine, theirs in zip(one[1:], other[1:], strict=False):
        if mine != theirs:
            break
        agreeing += 1
    return agreeing, one[0] == other[0]


def _ambiguous(table: str, image: ImageName, candidates: Sequence[ImageName]) -> Problem:
    places = " or ".join(str(Path(candidate.folder, written(candidate))) for candidate in candidates[:2])
    return Problem(table, None, f"the image {written(image)!r} may be {places}", "Write more of its path")


def _twice(table: str, image: ImageName, other: ImageName, true: ImageName) -> Problem:
    places = " and ".join(str(Path(each.folder, written(each))) for each in (other, image))
    what = f"{places} would both be {written(true)!r} of the truth"
    return Problem(table, None, what, "Write more of the paths, in the truth too, or leave one out")


def _strangers(table: str, predicted: ImageName, true: ImageName) -> Problem:
    what = f"no image with predictions is in the truth: {written(predicted)!r} here, {written(true)!r} there"
    return Problem(table, None, what, "Name the images alike; their endings may differ")
