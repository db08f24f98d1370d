"""What sources of few large files have in common: samples found by an index, and flows that ask for many at once.

column           of each sample
file             the number of its file
offset, length   its bytes there, all fields together
image_offset, image_length, width, height        its image, where it has one
and a column for each class and number among its fields
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import Problem, nearest
from penstock.formats.indexed.kept_indexes import Index, text_of
from penstock.formats.indexed.mapped_files import FileState, MappedFile, MappedFiles, Numbers
from penstock.formats.split_files import splits_of
from penstock.samples import Origin, Raw, Sample, Schema
from penstock.samples.mapped_store import MappedStore, Stretches
from penstock.samples.store import ImageStorage, Places, objects
from penstock.wording import counted

# Never the names of fields, because they have a dot.
FILE, OFFSET, LENGTH = "at.file", "at.offset", "at.length"
IMAGE_OFFSET, IMAGE_LENGTH, WIDTH, HEIGHT = "image.offset", "image.length", "image.width", "image.height"


class IndexedSource(MappedStore):
    """A source over mapped files; `read` gives the bytes of the image, or of the whole sample where it has none."""

    _image_storage: ImageStorage | None = None

    def __init__(
        self, origins: Sequence[FileState], files: MappedFiles, index: Index, name: str, schema: Schema
    ) -> None:
        self.origins = tuple(origins)
        self.files, self.columns, self.about, self._schema = files, index.columns, index.about, schema
        self._name = name
        self._splits = splits_of(file.path for file in self.origins)
        self._problems = tuple(Problem(**one) for one in index.about.get("problems", ()))
        has_image = IMAGE_OFFSET in index.columns
        # memoryviews give plain ints, in half the time of numpy scalars
        self._file = index.columns[FILE].data
        self._start = index.columns[IMAGE_OFFSET if has_image else OFFSET].data
        self._bytes = index.columns[IMAGE_LENGTH if has_image else LENGTH].data

    @abstractmethod
    def annotations(self, index: int) -> Sample:
        """Every field but the pixels."""

    @abstractmethod
    def decode(self, raw: Raw) -> Sample:
        """Every field of a sample."""

    @property
    def image_storage(self) -> ImageStorage | None:
        return self._image_storage

    def __len__(self) -> int:
        return len(self._file)

    def __repr__(self) -> str:
        files = len(self.files.states)
        return (
            f"{type(self).__name__}({counted(len(self), 'sample')} in {counted(files, 'file')}, "
            f"{counted(len(self.classes), 'class')})"
        )

    def read(self, index: int) -> Raw:
        """The bytes of a sample, as a view of the mapped file."""
        start = self._start[index]
        return Raw(index, self.files[self._file[index]].data[start : start + self._bytes[index]])

    def named(self, index: int) -> Sample:
        """What a sample says of where it comes from: key, group, and split where the name of its file tells."""
        key = text_of(self.columns, "key", index)
        group = text_of(self.columns, "group", index) if "group.ends" in self.columns else key
        split = self._splits[self._file[index]]
        return {"key": key, "group": group} if split is None else {"key": key, "group": group, "split": split}

    def column(self, name: str) -> NDArray[Any]:
        """key, group, split, file, width and height, or a class or number of every sample."""
        if name in ("key", "group") or (name == "split" and None not in self._splits):
            return np.array([self.named(index)[name] for index in range(len(self))], object)
        if name in (found := {"file": FILE, "width": WIDTH, "height": HEIGHT}) and found[name] in self.columns:
            return self.columns[found[name]]
        if name in self.schema and name in self.columns:
            return self.columns[name]
        there = ["key", "group", "file", *(field.name for field in self.schema.fields if field.name in self.columns)]
        raise KeyError(f"no column {name!r}; there are {', '.join(there)}.{nearest(name, there)}")

    def origin(self, index: int) -> Origin:
        return Origin(*self.origins[self._file[index]])

    def problems(self) -> list[Problem]:
        """What was noticed when the index was made."""
        return list(self._problems)

    def fingerprint(self) -> str:
        """Changes with the files and with what is asked of them."""
        return self._name

    # What flows ask of many samples at once

    def gather(self, name: str, indices: Numbers) -> NDArray[Any]:
        """A field of these samples as one array."""
        if name in self.columns:
            return self.columns[name][indices]
        values = [self.annotations(index)[name] for index in indices.tolist()]
        is_one_shape = len({np.shape(value) for value in values}) == 1
        return np.array(values) if is_one_shape else objects(values)

    def image_sizes(self, indices: Numbers) -> Numbers | None:
        """Width and height of these images, n×2."""
        if WIDTH not in self.columns:
            return None
        return np.stack([self.columns[WIDTH][indices], self.columns[HEIGHT][indices]], axis=1)

    def uniform_image_size(self) -> tuple[int, int] | None:
        """Width and height, where all images have the same."""
        if not len(self) or IMAGE_OFFSET not in self.columns:
            return None
        width, height = self.columns[WIDTH], self.columns[HEIGHT]
        is_uniform = (width == width[0]).all() and (height == height[0]).all()
        return (int(width[0]), int(height[0])) if is_uniform else None

    def pixel_places(self, indices: Numbers) -> Places:
        """Where raw pixels are: the mapped files, and for each image which one, the byte, width and height."""
        return self.places_in(*(self.columns[name][indices] for name in (FILE, IMAGE_OFFSET, WIDTH, HEIGHT)))

    def encoded_places(self, indices: Numbers) -> Places | None:
        """Where encoded images are: the mapped files, and for each image which one, the byte, and its length."""
        return self.places_in(*(self.columns[name][indices] for name in (FILE, IMAGE_OFFSET, IMAGE_LENGTH)))

    def stretches_of(self, indices: Numbers) -> Stretches:
        return Stretches(*(self.columns[name][indices] for name in (FILE, OFFSET, LENGTH)))

    def mapped_file(self, number: int) -> MappedFile:
        return self.files[number]

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return self.files.bytes
