"""Samples whose images go from their bytes straight into the batch: one call of the kernel for a whole range.

bytes (or raw pixels) ──► decode what is seen ──► resize ──► part ──► flip ──► normalise ──► slot
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.augment.composing import views_of
from penstock.augment.views import Views
from penstock.codecs import kernel
from penstock.codecs.decoding_room import may_be_large
from penstock.codecs.headers import UnreadableImage, read_header
from penstock.errors import HopError, OptionError
from penstock.flow.making.chains import Chain
from penstock.flow.measuring.metrics import Stopwatch
from penstock.flow.order.orders import Draws, Numbers
from penstock.flow.user_errors import reason_of
from penstock.samples import Store
from penstock.samples.store import ImageStorage

NOTHING_KEPT = np.zeros((1, 1, 3), np.uint8)  # stands for an image that could not be made


@dataclass(frozen=True)
class Fusion:
    """The planner's decision: the first steps of a chain are one view, made by the kernel."""

    stored: ImageStorage
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


class Missed(NamedTuple):
    """Why an image could not be made, and at which hop."""

    hop: str
    reason: str


class Seen(NamedTuple):
    """What is known of some samples before they are read: where their images are, and what is seen of them."""

    base: Store
    indices: Numbers  # of the images, in the base; several a sample for clips
    frames: int
    views: Views  # of the samples
    crops: Numbers  # the same as the kernel takes them
    places: Numbers | None  # number of the buffer, byte; then of raw pixels width and height, of encoded ones length
    buffers: tuple[Any, ...]
    bytes_before: Numbers | None = None  # each image with a place, and the end: of those before it
    has_large: bool = False  # whether decoding one of these encoded images may count in the memory budget

    @property
    def bytes(self) -> int:
        """Of the images that have places."""
        return 0 if self.bytes_before is None else int(self.bytes_before[-1] - self.bytes_before[0])

    def span(self, start: int, stop: int) -> Seen:
        """The same of samples start to stop."""
        first, last = start * self.frames, stop * self.frames
        views, crops, indices = self.views.span(start, stop), self.crops[start:stop], self.indices[first:last]
        if self.places is None or self.bytes_before is None:
            return Seen(self.base, indices, self.frames, views, crops, None, self.buffers)
        places, before = self.places[first:last], self.bytes_before[first : last + 1]
        return Seen(self.base, indices, self.frames, views, crops, places, self.buffers, before, self.has_large)


def seen(fusion: Fusion, source: Store, draws: Draws) -> Seen | None:
    """What can be known of a range without reading it; None where sizes of images are only in their bytes."""
    base, indices, frames = source.images_at(draws.index)
    if fusion.stored == "raw":
        buffers, places = base.pixel_places(indices)
        views = _views(fusion, draws, places[::frames, 2:])
        before = _sums_before(places[:, 2] * places[:, 3] * 3)
        return Seen(base, indices, frames, views, views.kernel_crops, places, buffers, before)
    sizes = base.image_sizes(indices[::frames])
    if sizes is None:
        return None
    views, found = _views(fusion, draws, sizes), base.encoded_places(indices)
    has_large = may_be_large(int(sizes.prod(axis=1).max(initial=0)))
    if found is None:
        return Seen(base, indices, frames, views, views.kernel_crops, None, (), None, has_large)
    buffers, places = found
    before = _sums_before(places[:, 2])
    return Seen(base, indices, frames, views, views.kernel_crops, places, buffers, before, has_large)


def _sums_before(sizes: Numbers) -> Numbers:
    sums = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=sums[1:])
    return sums


def _views(fusion: Fusion, draws: Draws, sizes: Numbers) -> Views:
    """What is seen of each image; the frames of one clip are seen alike."""
    steps = [link.step.step for link in fusion.geometric]  # type: ignore[union-attr]
    return views_of(steps, sizes, [link.uniforms(draws) for link in fusion.geometric])


class Range:
    """The images of a range of samples on their way: read, seen through their views, made."""

    def __init__(self, fusion: Fusion, source: Store, draws: Draws, known: Seen | None) -> None:
        self.fusion, self.draws = fusion, draws
        self.known = known or seen(fusion, source, draws)
        self.source, self.indices, self.frames = source.images_at(draws.index) if self.known is None else self.known[:3]
        self.failed: dict[int, Missed] = {}
        self.data: list[Any] = []

    def read(self) -> int:
        """Find the bytes, and say how many they are; nothing is decoded."""
        if self.fusion.stored == "kept":
            return 0
        if self.known is not None and self.known.places is not None:
            self._find_damage()
            return self.known.bytes
        read = self.source.read
        try:
            self.data = [read(index).data for index in self.indices.tolist()]
        except Exception:  # noqa: BLE001 - each is read again, and what fails is told by sample
            self.data = [self._attempt(number, index) for number, index in enumerate(self.indices.tolist())]
        return sum(map(len, self.data))

    def _find_damage(self) -> None:
        """Let a source that keeps checksums compare them: nobody asks it for the bytes."""
        missed = self.source.damaged(self.indices)
        self.failed.update({number // self.frames: Missed("read", reason) for number, reason in missed.items()})

    def _attempt(self, number: int, index: int) -> Any:
        """The bytes of one image, or none and the reason."""
        try:
            return self.source.read(index).data
        except (HopError, OptionError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a source raises, the user must learn which sample it was
            self.failed[number // self.frames] = Missed("read", reason_of(error))
            return b""

    def take_kept(self) -> None:
        """The images of a cache, which makes those that it does not have."""
        self.data = [self._kept(number, index) for number, index in enumerate(self.indices.tolist())]

    def _kept(self, number: int, index: int) -> NDArray[np.uint8]:
        try:
            return self.source.kept_pixels(index)
        except HopError as error:
            self.failed[number] = Missed(error.hop, error.reason)
        except OptionError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the user must learn which sample it was
            self.failed[number] = Missed("decode", reason_of(error))
        return NOTHING_KEPT

    def look(self) -> Seen:
        """What is seen of the images, at the latest now that their bytes are there."""
        if self.known is None:
            sizes = self._kept_sizes() if self.fusion.stored == "kept" else self._header_sizes()
            views = _views(self.fusion, self.draws, sizes)
            self.known = Seen(self.source, self.indices, self.frames, views, views.kernel_crops, None, ())
        return self.known

    def _kept_sizes(self) -> Numbers:
        return np.array([(pixels.shape[1], pixels.shape[0]) for pixels in self.data], np.int64)

    def _header_sizes(self) -> Numbers:
        firsts = enumerate(self.data[:: self.frames])
        return np.array([self._header_size(number, data) for number, data in firsts], np.int64)

    def _header_size(self, number: int, data: Any) -> tuple[int, int]:
        try:
            header = read_header(data)
        except UnreadableImage as error:
            self.failed.setdefault(number, Missed("decode", str(error)))
            return 1, 1
        return header.width, header.height

    def _kept_places(self) -> Numbers:
        """Every image has a buffer of its own."""
        numbers = np.arange(len(self.data))
        return np.column_stack([numbers, np.zeros_like(numbers), self._kept_sizes()])

    def make(self, known: Seen, out: NDArray[Any]) -> dict[int, Missed]:
        """Write the images into `out`; gives what failed, by number of the sample."""
        fusion, target, fill = self.fusion, self.fusion.target, known.views.fill
        crops, flips = known.crops, known.views.flips
        if self.frames > 1:
            crops, flips = np.repeat(crops, self.frames, axis=0), np.repeat(flips, self.frames)
        rows = out.reshape(-1, *target.shape)
        if fusion.stored == "raw":
            assert known.places is not None
            failures = kernel.pixels_range(known.buffers, known.places, crops, flips, rows, target, fill=fill)
        elif fusion.stored == "kept":
            failures = kernel.pixels_range(self.data, self._kept_places(), crops, flips, rows, target, fill=fill)
        else:
            data: Sequence[Any] = self.data
            if known.places is not None:
                data = kernel.Placed(known.buffers, known.places, has_large=known.has_large)
            failures = kernel.decode_range(
                data, crops, flips, rows, target, reduced=fusion.reduced, fill=fill, fast=fusion.fast
            )
        if fusion.gives_back:
            self.source.give_back(self.indices)
        found = {one.position // self.frames: Missed("decode", one.reason) for one in reversed(failures)}
        return {**found, **self.failed}


def images_of_range(
    fusion: Fusion, source: Store, draws: Draws, out: NDArray[Any], watch: Stopwatch, known: Seen | None = None
) -> tuple[Views, dict[int, Missed]]:
    """All of it for one range: the views that were taken, and what failed."""
    images, count = Range(fusion, source, draws, known), len(draws.index)
    watch.count("transform", count)
    if known is None:
        watch.lap("transform")
    watch.lap("read", count, images.read())
    if fusion.stored == "kept":
        images.take_kept()
        watch.lap("decode")
    if images.known is None:
        images.look()
        watch.lap("transform")
    shown = images.look()
    failed = images.make(shown, out)
    watch.lap("decode", count, out.nbytes)
    return shown.views, failed


def stored_as(source: Store) -> ImageStorage | None:
    """Whether the kernel can make the images of a source from what `read` gives, or a cache keeps."""
    base, _, _ = source.images_at(np.zeros(0, np.int64))
    storage = base.image_storage
    if storage == "kept":
        return storage
    pixels = [field for field in base.schema.fields if field.kind in ("image", "mask")]
    if base.schema.image is None or len(pixels) != 1:
        return None
    return storage if storage != "encoded" or base.knows_annotations else None
