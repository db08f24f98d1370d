"""What caches have in common: they look like the source of their leaf, and say whether they keep whole images.

Where they do, the steps behind a cache go into the batch in one call of the kernel, as those behind a pack do.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import HopError
from penstock.flow.making.fusing import located
from penstock.flow.making.leaves import Leaf
from penstock.samples import RESERVED, Raw, Sample, Schema, Source, annotations_of, column_of, describe


class CachedSource(ABC):
    """A source that gives what a leaf makes of each sample; `read` and `decode` are for those who keep it."""

    leaf: Leaf

    @property
    def source(self) -> Source:
        return self.leaf.source

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

    @functools.cached_property
    def keeps_pixels(self) -> bool:
        """Whether `kept_pixels` gives the image of a sample, and `annotations` all the rest."""
        return keeps_images(self.leaf)

    def kept_pixels(self, index: int) -> NDArray[np.uint8]:
        """The image of a sample, made if need be; HopError where that fails."""
        assert self.schema.image is not None
        return checked_image(self.leaf, index, self.decode(self.read(index))[self.schema.image.name])

    def uniform_image_size(self) -> tuple[int, int] | None:
        """Width and height of all images, where nothing was done to them and the source knows it."""
        uniform = getattr(self.source, "uniform_image_size", None)
        found: tuple[int, int] | None = None if uniform is None or self.leaf.chain else uniform()
        return found

    def annotations(self, index: int) -> Sample:
        """What a sample says of itself; its fields where they are known before it is made."""
        return annotations_of(self.source, index) if self.keeps_pixels else said_of_itself(self.source, index)

    def column(self, name: str) -> NDArray[Any]:
        return column_of(self.source, name)


def keeps_images(leaf: Leaf) -> bool:
    """Whether what a cache of this leaf keeps is one image a sample, and the source knows the rest without decoding."""
    base, _, frames = located(leaf.source, np.zeros(0, np.int64))
    kinds = [field.kind for field in leaf.source.schema.fields]
    is_known = hasattr(base, "annotations") and getattr(base, "keeps_pixels", True)
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
        raise HopError("decode", describe(leaf.source, index), f"an image must be uint8 H×W×3, and is {got}")
    return np.ascontiguousarray(pixels)


def said_of_itself(source: Source, index: int) -> Sample:
    """Key, group, split and origin of a sample, where its source knows them without decoding."""
    if not hasattr(source, "annotations"):
        return {}
    return {name: value for name, value in annotations_of(source, index).items() if name in RESERVED}
