"""Whether data fit a task: what is there, what is missing, which classes occur; said before hours are spent."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, OptionError, Problem, nearest
from penstock.formats.reading import parse_classes
from penstock.samples import Field, Store, Subset
from penstock.wording import counted


def checked_classes(classes: Any) -> tuple[str, ...]:
    """The names as a tuple, each once; a dict numbers them; a path is a file with one per line (classes.csv)."""
    is_file = isinstance(classes, os.PathLike) or (isinstance(classes, str) and classes.endswith((".csv", ".txt")))
    if is_file or isinstance(classes, Mapping | Set):
        return parse_classes(classes) or ()
    if isinstance(classes, str) or not all(isinstance(name, str) and name for name in classes):
        raise OptionError(f"classes={classes!r} must be a list of names, or a file such as classes.csv.")
    twice = {name for name in classes if list(classes).count(name) > 1}
    if twice:
        raise OptionError(f"classes has {', '.join(sorted(twice))} more than once.")
    return tuple(classes)


def image_field(source: Store, name: str) -> str:
    """The field that holds the image: the one of this name, else the only one there is."""
    images = [field.name for field in source.schema.fields if field.kind == "image"]
    if name in images:
        return name
    if len(images) == 1:
        return images[0]
    raise OptionError(f"{name_of(source)} has no image called {name!r}; its images are: {', '.join(images) or 'none'}.")


def label_field(source: Store, name: str, kind: str) -> str | None:
    """The field that holds the label: the one of this name, else the only one of its kind; None where there is none."""
    fields = [field for field in source.schema.fields if _is_label(field, kind)]
    if name == "auto":
        return fields[0].name if fields else None
    if name in [field.name for field in fields]:
        return name
    return None


def _is_label(field: Field, kind: str) -> bool:
    return field.kind == kind and field.name != "box_label"


def need_samples(source: Store, purpose: str) -> None:
    """Refuse a source without samples."""
    if not len(source):
        raise _refused(source, f"there are no samples for {purpose}", "Choose another split, or other data")


def need_label(source: Store, label: str | None, name: str, kind: str) -> str:
    """Refuse a source without labels of this kind."""
    if label is not None:
        return label
    there = ", ".join(f"{field.name} ({field.kind})" for field in source.schema.fields)
    wanted = {"class": "a class for each sample", "labels": "a vector of labels for each sample"}[kind]
    asked = "" if name == "auto" else f" called {name!r}"
    raise _refused(source, f"there is no field with {wanted}{asked}; there are {there}", "Choose data with labels")


def need_known_classes(source: Store, label: str, classes: Sequence[str]) -> None:
    """Refuse samples of a class that the task does not have; classes that only have a name are no trouble."""
    own = source.schema.classes
    unknown = [number for number, name in enumerate(own) if name not in classes]
    if not unknown:
        return
    counts = class_counts(source, label, len(own))
    problems = [
        Problem(
            name_of(source),
            None,
            f"{counted(counts[number], 'sample', 'is')} of class {own[number]!r}, which the model does not have "
            f"(it has {', '.join(classes)})",
            f"Leave them out, or train with this class.{nearest(own[number], list(classes))}",
        )
        for number in unknown
        if counts[number]
    ]
    if problems:
        raise DataError(problems)


def need_two_classes(source: Store, label: str, classes: Sequence[str]) -> None:
    """Refuse training data in which there is nothing to tell apart."""
    own = source.schema.classes
    counts = class_counts(source, label, len(own))
    present = [name for name, count in zip(own, counts, strict=True) if count and name in classes]
    if not present:
        raise _refused(source, "no sample has a label", "Label some, or choose other data")
    if len(present) < 2:
        raise _refused(
            source, f"all labelled samples are of one class, {present[0]!r}", "Add samples of at least one other class"
        )


def class_counts(source: Store, label: str, count: int) -> NDArray[np.int64]:
    """How many samples each class of the source has."""
    labels = labels_of(source, label)
    if labels.ndim == 2:
        present: NDArray[np.int64] = (labels > 0).sum(axis=0)
        return present
    counts: NDArray[np.int64] = np.bincount(labels[labels >= 0].astype(np.int64), minlength=count)
    return counts


def labels_of(source: Store, label: str) -> NDArray[Any]:
    """The label of every sample: from its column where there is one, else from the samples."""
    try:
        return source.column(label)
    except KeyError:
        return np.array([source.annotations(index)[label] for index in range(len(source))])


def name_of(source: Any) -> str:
    """How to call a source in an error message: its file, also below a subset."""
    if isinstance(source, Subset):
        return name_of(source.source)
    return source.kind.__name__ if source.path is None else str(source.path)


def _refused(source: Store, what: str, remedy: str) -> DataError:
    return DataError([Problem(name_of(source), None, what, remedy)])
