"""Images with a class each, or without: class folders, a plain folder, a name pattern, or a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.images import decode_image
from penstock.errors import DataError, OptionError, Problem, one_of
from penstock.formats.boxes.locating import read_sizes, unreadable
from penstock.formats.grouping import groups_of, is_pattern, text_column
from penstock.formats.images.image_lists import ImageList, folder_list, has_class_folders, named_list, plain_list
from penstock.formats.images.image_tables import table_list
from penstock.formats.paths import PathLike, origin_of, read_bytes, read_samples
from penstock.formats.patterns import NamePattern
from penstock.formats.provenance import provenance
from penstock.formats.reading import parse_classes
from penstock.samples import Field, Origin, Raw, ReadSample, Sample, Schema, Store
from penstock.samples.store import ImageStorage
from penstock.storage.locations import refuses_urls
from penstock.wording import counted

LABELS = ("auto", "folders", "none")


class Images(Store):
    """Images and their classes; nothing is opened until it is read.

    path             a folder, or a CSV or Parquet table with columns path and label (split and group where it has them)
    images           the folder that a table's paths are relative to; else the folder of the table
    label_from_name  a pattern on the file's name, such as '{label}.*': cat.0.jpg is a cat
    labels           "auto" (sub-folders with images are classes), "folders", or "none"
    classes          names in their order, as a list, "A,B" or a file with one name per line; else they are sorted
    group_from       a pattern such as '{animal}_*', or a column of the table; else each image is its own group
    split_from       the column of the table that names the split; else `split` where there is one
    allow_outside    allow a table's paths to leave the folder of the images

    Without labels the schema has no `label`. Files without the ending of an image are ignored; what an image is,
    its content decides.
    """

    @refuses_urls()
    def __init__(
        self,
        path: PathLike,
        *,
        images: PathLike | None = None,
        label_from_name: str | None = None,
        labels: str = "auto",
        classes: PathLike | Sequence[str] | None = None,
        group_from: str | None = None,
        split_from: str | None = None,
        allow_outside: bool = False,
    ) -> None:
        one_of("labels", labels, LABELS)
        names = parse_classes(classes)
        root = os.fspath(path).rstrip("/") or "/"
        if Path(root).is_dir():
            if images is not None or split_from is not None or (group_from is not None and not is_pattern(group_from)):
                raise OptionError(
                    "images and columns for group or split belong to a table of images; this is a folder."
                )
            listed = _list_folder(root, label_from_name, labels, names)
        elif Path(root).is_file():
            column = None if is_pattern(group_from) else group_from
            listed = table_list(
                Path(root),
                images=images,
                classes=names,
                group_column=column,
                split_column=split_from,
                allow_outside=allow_outside,
            )
        else:
            raise DataError([Problem(root, None, "no such file or folder", "Pass a folder of images, or a table")])
        groups, problems = groups_of(listed.keys, listed.files, listed.groups, group_from)
        self._list, self._groups = listed, groups
        self._given = provenance(
            path=path,
            images=images,
            label_from_name=label_from_name,
            classes=classes,
            group_from=group_from,
            split_from=split_from,
        )
        self._problems = (*listed.problems, *problems)
        fields = (Field("image", "image"), *((Field("label", "class"),) if listed.labels is not None else ()))
        self._schema = Schema(fields, listed.classes)

    @property
    def image_storage(self) -> ImageStorage:
        """The bytes that `read` gives are a whole encoded image, which a pack may keep as they are."""
        return "encoded"

    @property
    def left_out(self) -> dict[str, str]:
        """Columns of the table that became no field, and why."""
        return dict.fromkeys(self._list.left_out, "images have a label, a split and a group, nothing else")

    def __len__(self) -> int:
        return len(self._list.files)

    def __repr__(self) -> str:
        return f"Images({counted(len(self), 'image')}, {counted(len(self.classes), 'class')})"

    def read(self, index: int) -> Raw:
        return Raw(index, read_bytes(self._list.files[index]))

    def read_many(self, indices: Sequence[int], allocate: Callable[[int], memoryview]) -> list[ReadSample | None]:
        """Several images in one call, those that cannot be read left to `read`."""
        return read_samples(self._list.files, indices, allocate)

    def decode(self, raw: Raw) -> Sample:
        return {"image": decode_image(raw.data), **self.annotations(raw.index)}

    def annotations(self, index: int) -> Sample:
        """Every field but the pixels."""
        listed = self._list
        sample: Sample = {"key": listed.keys[index], "group": self._groups[index]}
        if listed.labels is not None:
            sample["label"] = int(listed.labels[index])
        if listed.splits is not None:
            sample["split"] = listed.splits[index]
        return sample

    def column(self, name: str) -> NDArray[Any]:
        """key, group, label (where there are labels) or split (where it is known) of every image."""
        if name == "label" and self._list.labels is not None:
            return self._list.labels.copy()
        texts = {"key": self._list.keys, "group": self._groups, "split": self._list.splits}
        return text_column(texts, name)

    def origin(self, index: int) -> Origin:
        return origin_of(self._list.files[index])

    def problems(self) -> list[Problem]:
        """What is wrong with the list: names, labels, files that are missing. No image is opened."""
        return list(self._problems)

    def made_from(self) -> dict[str, Any]:
        return dict(self._given)

    def damage(self) -> list[Problem]:
        """Images that cannot be read or were cut short, as far as each header and end tell."""
        files = [Path(file) for file in self._list.files]
        _, reasons = read_sizes(files, np.ones(len(files), bool), decoded=True)
        return [unreadable(str(files[number]), reason) for number, reason in reasons.items()]


def _list_folder(root: str, label_from_name: str | None, labels: str, classes: tuple[str, ...] | None) -> ImageList:
    if label_from_name is not None:
        if labels != "auto":
            raise OptionError(f"label_from_name and labels={labels!r} exclude each other.")
        return named_list(root, NamePattern(label_from_name, "label"), classes)
    if labels == "folders" or (labels == "auto" and has_class_folders(root)):
        return folder_list(root, classes)
    return plain_list(root)
