"""Data of detection: where the boxes are, which classes they have, and what is fitted to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, Problem, nearest
from penstock.geometry import Boxes, as_boxes
from penstock.results.georeferences import metres_per_pixel, same_resolution
from penstock.samples import RESERVED, Field, Sample, Schema, Store, Subset
from penstock.tasks.data_checks import name_of
from penstock.tasks.labelled import IMAGE, OneImage
from penstock.wording import counted

# A source as detection sees it: its image as `image`, its boxes as `boxes`, their classes by the task's numbers.


BOXES, BOX_LABEL = "boxes", "box_label"


def boxed(source: Store, image: str, boxes: str | None, classes: Sequence[str]) -> Store:
    """The source with these fields alone, under our names. Subsets stay subsets."""
    if isinstance(source, Subset):
        return Subset(boxed(source.source, image, boxes, classes), source.indices)
    return Boxed(source, image, boxes, tuple(classes))


class Boxed(OneImage):
    """The image and the boxes of another source; boxes of classes that are not asked for are left out."""

    def __init__(self, source: Store, image: str, boxes: str | None, classes: tuple[str, ...]) -> None:
        fields = (Field(IMAGE, "image"),)
        labels = (Field(BOXES, "boxes"), Field(BOX_LABEL, "labels", "int64"))
        super().__init__(source, image, Schema(fields if boxes is None else (*fields, *labels), classes))
        self._boxes = boxes

    def _renamed(self, sample: Sample) -> Sample:
        kept: Sample = {name: sample[name] for name in RESERVED if name in sample}
        if self._boxes is None:
            return kept
        boxes = as_boxes(sample[self._boxes])
        labels = self._labels(sample, len(boxes))
        known = labels >= 0
        return {**kept, BOXES: boxes[known], BOX_LABEL: labels[known]}

    def _labels(self, sample: Sample, count: int) -> NDArray[np.int64]:
        """The number of each box's class; where boxes have no classes, all are of the first."""
        labels = sample.get(BOX_LABEL)
        if labels is None or not len(self._numbers):
            return np.zeros(count, np.int64)
        own = np.asarray(labels).astype(np.int64)
        return np.where(own >= 0, self._numbers[np.maximum(own, 0)], -1)

    def fingerprint(self) -> str | None:
        inner = self.source.fingerprint()
        return None if inner is None else f"{inner} {self._image} {self._boxes} {self.schema.classes}"


# Samples that are looked at where a set is too large to look at all: boxes and their sizes are known from these.
MOST_LOOKED_AT = 20_000


def boxes_field(source: Store, name: str) -> str | None:
    """The field that holds the boxes: the one of this name, else the first; None where there is none."""
    fields = [field.name for field in source.schema.fields if field.kind == "boxes"]
    if name == "auto":
        return fields[0] if fields else None
    return name if name in fields else None


def need_boxes(source: Store, found: str | None, name: str) -> str:
    """Refuse a source without boxes."""
    if found is not None:
        return found
    there = ", ".join(f"{field.name} ({field.kind})" for field in source.schema.fields)
    asked = "" if name == "auto" else f" called {name!r}"
    raise _refused(source, f"there is no field with boxes{asked}; there are {there}", "Pack them with boxes")


def looked_at(source: Store) -> Iterator[dict[str, Any]]:
    """The annotations of all samples, or of so many, evenly spread."""
    count = min(len(source), MOST_LOOKED_AT)
    for index in np.linspace(0, len(source) - 1, count).astype(np.int64).tolist():
        yield source.annotations(index)


def box_sizes(source: Store, boxes: str) -> NDArray[np.float64]:
    """Width and height of boxes with area, n×2."""
    found: list[Boxes] = [as_boxes(sample[boxes]) for sample in looked_at(source)]
    every = np.concatenate([as_boxes([]), *found]).astype(np.float64)
    sizes: NDArray[np.float64] = every[:, 2:] - every[:, :2]
    return sizes[(sizes > 0).all(axis=1)]


def need_some_boxes(source: Store, boxes: str) -> None:
    """Refuse training data in which nothing is to be found."""
    if not any(len(sample[boxes]) for sample in looked_at(source)):
        raise _refused(source, "no sample has a box", "Add samples with boxes; those without may stay")


def need_resolution(source: Store, gsd: float | str | None) -> None:
    """Refuse training data of another resolution than the one that the task names."""
    found = ground_resolution(source)
    if isinstance(gsd, (int, float)) and found is not None and not same_resolution(gsd / found):
        raise _refused(
            source,
            f"a pixel is {found:g} m of ground, and the task wants gsd={gsd:g}",
            f"Cut the rasters with gsd={gsd:g} (penstock pack rasters --gsd {gsd:g}), or pass gsd=auto",
        )


def ground_resolution(source: Store) -> float | None:
    """Metres in a pixel of the first sample that is on a map; None where none of some is."""
    if "transform" not in source.schema or "crs" not in source.schema:
        return None
    for index in range(min(len(source), 16)):
        sample = source.annotations(index)
        found = metres_per_pixel(np.asarray(sample["transform"], np.float64), str(sample["crs"]))
        if found is not None:
            return found
    return None


def need_known_classes(source: Store, boxes: str, classes: Sequence[str]) -> None:
    """Refuse boxes of a class that the task does not have; classes that only have a name are no trouble."""
    own = source.schema.classes
    unknown = [number for number, name in enumerate(own) if name not in classes]
    if not unknown or BOX_LABEL not in source.schema:
        return
    counts = np.zeros(len(own), np.int64)
    for sample in looked_at(source):
        labels = np.asarray(sample[BOX_LABEL]).astype(np.int64)
        counts += np.bincount(labels[labels >= 0], minlength=len(own))
    problems = [
        Problem(
            name_of(source),
            None,
            f"{counted(counts[number], 'box', 'is')} of class {own[number]!r}, which the model does not have "
            f"(it has {', '.join(classes)})",
            f"Leave them out, or train with this class.{nearest(own[number], list(classes))}",
        )
        for number in unknown
        if counts[number]
    ]
    if problems:
        raise DataError(problems)


def _refused(source: Store, what: str, remedy: str) -> DataError:
    return DataError([Problem(name_of(source), None, what, remedy)])
