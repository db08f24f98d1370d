"""Image files by their paths, without labels: what prediction is given when it is given photos."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.images import decode_image
from penstock.errors import DataError, Problem
from penstock.formats.paths import IMAGE_ENDINGS, expand, files_below, origin_of, read_bytes
from penstock.samples import Field, Origin, Raw, Sample, Schema, Store
from penstock.samples.store import ImageStorage
from penstock.storage.file_names import readable_name
from penstock.wording import counted

PathLike = str | os.PathLike[str]


class ImageFiles(Store):
    """Images in the order in which they were given; the key of each is its path."""

    def __init__(self, files: Iterable[PathLike]) -> None:
        self.files = [os.fspath(file) for file in files]
        self._schema = Schema((Field("image", "image"),))

    def __len__(self) -> int:
        return len(self.files)

    @property
    def image_storage(self) -> ImageStorage:
        return "encoded"

    def __repr__(self) -> str:
        return f"ImageFiles({counted(len(self), 'image')})"

    def read(self, index: int) -> Raw:
        return Raw(index, read_bytes(self.files[index]))

    def decode(self, raw: Raw) -> Sample:
        return {"image": decode_image(raw.data), **self.annotations(raw.index)}

    def annotations(self, index: int) -> Sample:
        """The path; each image is a group of its own."""
        name = readable_name(self.files[index])
        return {"key": name, "group": name}

    def column(self, name: str) -> NDArray[Any]:
        if name not in ("key", "group"):
            raise KeyError(name)
        return np.array([readable_name(file) for file in self.files], dtype=object)

    def origin(self, index: int) -> Origin:
        return origin_of(self.files[index])


def image_files(paths: PathLike | Sequence[PathLike]) -> ImageFiles:
    """The images that a file, a folder, a pattern with * or a list of these stands for."""
    found: dict[str, None] = {}
    for path in expand(paths):
        files = files_below(path, IMAGE_ENDINGS) if path.is_dir() else [path]
        found.update(dict.fromkeys(map(os.fspath, files)))
    if not found:
        given = paths if isinstance(paths, (str, Path)) else "the list"
        raise DataError(
            [Problem(str(given), None, "there is no image", f"Known are {', '.join(sorted(IMAGE_ENDINGS))}")]
        )
    return ImageFiles(found)
