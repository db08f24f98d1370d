"""What caches have in common: they look like the source of their leaf, and say whether they keep whole images.

Where they do, the steps behind a cache go into the batch in one call of the kernel, as those behind a pack do.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import HopError
from penstock.flow.making.leaves import Leaf
from penstock.samples import RESERVED, FieldsAt, Numbers, Raw, Sample, Schema, Store
from penstock.samples.store import ImageStorage


class CachedSource(Store):
    """A source that gives what a leaf makes of each sample; `read` and `decode` are for those who keep it."""

    leaf: Leaf

    @property
    def source(self) -> Store:
        return self.leaf.source

    @property
    def below(self) -> tuple[Store, ...]:
        return (self.source,)

    @property
    def schema(self) -> Schema:
        """That of the source: steps behind a cache see the fields as they would without it."""
        return self.source.schema

    def __len__(self) -> int:
        return len(self.source)

    @abstractmethod
    def read(self, index: int) -> Raw: ...

    @abstractmethod
    def decode(self, raw: Raw) -> Sample: ...

    @property
    def image_storage(self) -> ImageStorage | None:
        """Whether `kept_pixels` gives the image of a sample, and `annotations` all the rest."""
        return "kept" if self._keeps_images else None

    @functools.cached_property
    def _keeps_images(self) -> bool:
        return keeps_images(self.leaf)

    @property
    def statistics(self) -> Mapping[str, Any] | None:
        return self.source.statistics

    def column(self, name: str) -> NDArray[Any]:
        return self.source.column(name)

    def frame_numbers(self) -> Numbers | None:
        return super().frame_numbers() if "frame" in self.schema else self.source.frame_numbers()

    def fields_at(self, indices: Numbers) -> FieldsAt:
        return self.source.fields_at(indices) if self._keeps_images else FieldsAt(self, indices)

    def kept_pixels(self, index: int) -> NDArray[np.uint8]:
        """The image of a sample, made if need be; HopError where that fails."""
        assert self.schema.image is not None
        return checked_image(self.leaf, index, self.decode(self.read(index))[self.schema.image.name])

    def uniform_image_size(self) -> tuple[int, int] | None:
        """Width and height of all images, where nothing was done to them and the source knows it."""
        return None if self.leaf.chain else self.source.uniform_image_size()

    def annotations(self, index: int) -> Sample:
        """What a sample says of itself; its fields where they are known before it is made."""
        return self.source.annotations(index) if self._keeps_images else said_of_itself(self.source, index)


def keeps_images(leaf: Leaf) -> bool:
    """Whether what a cache of this leaf keeps is one image a sample, and the source knows the rest without decoding."""
    base, _, frames = leaf.source.images_at(np.zeros(0, np.int64))
    kinds = [field.kind for field in leaf.source.schema.fields]
    is_known = base.image_storage == "kept" if isinstance(base, CachedSource) else base.knows_annotations
    is_one_image = frames == 1 and kinds.count("image") == 1 and "mask" not in kinds
    # Boxes that a step has moved are known only when the sample is made.
    return is_known and is_one_image and (not leaf.chain or (_only_resizes(leaf) and "boxes" not in kinds))


def _only_resizes(leaf: Leaf) -> bool:
    """Whether all that is done before the cache is one view of the image."""
    fusion = leaf.fusion
    return fusion is not None and fusion.links == len(leaf.chain) and not fusion.includes_normalize


def checked_image(leaf: Leaf, index: int, pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """An image as the kernel takes it; HopError where a source gives something else."""
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
        got = f"{pixels.dtype} {pixels.shape}"
        raise HopError("decode", leaf.source.describe(index), f"an image must be uint8 H×W×3, and is {got}")
    return np.ascontiguousarray(pixels)


def said_of_itself(source: Store, index: int) -> Sample:
    """Key, group, split and origin of a sample, where its source knows them without decoding."""
    if not source.knows_annotations:
        return {}
    return {name: value for name, value in source.annotations(index).items() if name in RESERVED}
