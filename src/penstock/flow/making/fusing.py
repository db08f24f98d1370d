"""Samples whose images go from their bytes straight into the batch: one call of the kernel for a whole range.

bytes (or raw pixels) ──► decode what is seen ──► resize ──► part ──► flip ──► normalise ──► slot
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from penstock.augment.composing import views_of
from penstock.augment.views import Views
from penstock.codecs import kernel
from penstock.codecs.headers import UnreadableImage, read_header
from penstock.flow.making.chains import Chain
from penstock.flow.making.clips import Clips
from penstock.flow.measuring.hops import Stopwatch
from penstock.flow.order.draws import Draws, Numbers
from penstock.samples import Source, Subset


@dataclass(frozen=True)
class Fusion:
    """The planner's decision: the first steps of a chain are one view, made by the kernel."""

    stored: Literal["encoded", "raw"]
    geometric: Chain
    target: kernel.Target
    includes_normalize: bool
    reduced: kernel.Reduced
    fast: bool
    gives_back: bool

    @property
    def links(self) -> int:
        """How many steps of the chain it stands for."""
        return len(self.geometric) + self.includes_normalize


class Range:
    """The images of a range of samples on their way: read, seen through their views, made."""

    def __init__(self, fusion: Fusion, source: Source, draws: Draws) -> None:
        self.fusion = fusion
        self.source, self.indices, self.frames = located(source, draws.index)
        self.draws = draws
        self.failed: dict[int, str] = {}

    def read(self) -> None:
        """Find the bytes; nothing is decoded."""
        if self.fusion.stored == "raw":
            self.buffers, self.places = self.source.pixel_places(self.indices)  # type: ignore[attr-defined]
            self.sizes: Numbers = self.places[:, 2:]
            self.bytes = int((self.sizes[:, 0] * self.sizes[:, 1]).sum()) * 3
        else:
            read = self.source.read
            self.data = [read(index).data for index in self.indices.tolist()]
            self.sizes = self._sizes()
            self.bytes = sum(map(len, self.data))

    def _sizes(self) -> Numbers:
        known = getattr(self.source, "image_sizes", None)
        if known is not None:
            found: Numbers = known(self.indices)
            return found
        return np.array([self._header_size(number, data) for number, data in enumerate(self.data)], np.int64)

    def _header_size(self, number: int, data: Any) -> tuple[int, int]:
        try:
            header = read_header(data)
        except UnreadableImage as error:
            self.failed[number // self.frames] = str(error)
            return 1, 1
        return header.width, header.height

    def views(self) -> Views:
        """What is seen of each image; the frames of one clip are seen alike."""
        steps = [link.step.step for link in self.fusion.geometric]  # type: ignore[union-attr]
        uniforms = [link.uniforms(self.draws) for link in self.fusion.geometric]
        return views_of(steps, self.sizes[:: self.frames], uniforms)

    def make(self, views: Views, out: NDArray[Any]) -> dict[int, str]:
        """Write the images into `out`; gives the reasons of those that failed, by number of the sample."""
        fusion, target = self.fusion, self.fusion.target
        crops = views.kernel_crops.astype(np.int32)
        flips = views.flips
        if self.frames > 1:
            crops, flips = np.repeat(crops, self.frames, axis=0), np.repeat(flips, self.frames)
        rows = out.reshape(-1, *target.shape)
        if fusion.stored == "raw":
            failures = kernel.pixels_range(self.buffers, self.places, crops, flips, rows, target, fill=views.fill)
        else:
            failures = kernel.decode_range(
                self.data, crops, flips, rows, target, reduced=fusion.reduced, fill=views.fill, fast=fusion.fast
            )
        if fusion.gives_back:
            self.source.give_back(self.indices)  # type: ignore[attr-defined]
        found = {failure.position // self.frames: failure.reason for failure in reversed(failures)}
        return {**found, **self.failed}


def located(source: Any, indices: Numbers) -> tuple[Source, Numbers, int]:
    """The source below subsets and clips, the numbers of the images there, and how many make up one sample."""
    frames = 1
    while True:
        if isinstance(source, Subset):
            source, indices = source.source, source.indices[indices]
        elif isinstance(source, Clips):
            frames *= source.frames
            source, indices = source.source, source.frame_indices(indices).ravel()
        else:
            return source, indices, frames


def labelled(source: Any, indices: Numbers) -> tuple[Source, Numbers]:
    """Where the fields beside the images are: below subsets, and for clips at the frame that labels them."""
    while True:
        if isinstance(source, Subset):
            source, indices = source.source, source.indices[indices]
        elif isinstance(source, Clips) and source.step.label != "all":
            source, indices = source.source, source.anchors[indices]
        else:
            return source, indices


def images_of_range(
    fusion: Fusion, source: Source, draws: Draws, out: NDArray[Any], watch: Stopwatch
) -> tuple[Views, dict[int, str]]:
    """All of it for one range: the views that were taken, and what failed."""
    images = Range(fusion, source, draws)
    images.read()
    watch.lap("read", len(draws.index), images.bytes)
    views = images.views()
    watch.lap("transform", len(draws.index))
    failed = images.make(views, out)
    watch.lap("decode", len(draws.index), out.nbytes)
    return views, failed


def stored_as(source: Source) -> Literal["encoded", "raw"] | None:
    """Whether the kernel can make the images of a source from what `read` gives."""
    base, _, _ = located(source, np.zeros(0, np.int64))
    image = base.schema.image
    pixels: Sequence[Any] = [field for field in base.schema.fields if field.kind in ("image", "mask")]
    if image is None or len(pixels) != 1:
        return None
    if getattr(base, "stores_pixels", False):
        return "raw"
    return "encoded" if getattr(base, "encoded_images", False) and hasattr(base, "annotations") else None
