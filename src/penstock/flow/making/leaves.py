"""From draws to finished rows: the leaf of a plan is one source and the chain of steps on its samples."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from penstock.augment.applying import apply_geometric
from penstock.augment.views import Views
from penstock.codecs.decoding_room import ROOM
from penstock.codecs.headers import UnreadableImage
from penstock.errors import HopError, OptionError, PackError
from penstock.flow.budget import process_budget
from penstock.flow.making.chains import Chain, run_chain
from penstock.flow.making.fusing import Fusion, Missed, Seen, images_of_range, seen
from penstock.flow.making.layout import Rows
from penstock.flow.measuring.metrics import Stopwatch
from penstock.flow.order.orders import Draws
from penstock.flow.user_errors import reason_in_function, reason_of
from penstock.samples import Kind, Sample, Store

UNREADABLE = "Fix or remove it, or pass on_bad_sample='substitute' to use another sample instead."


class Failure(NamedTuple):
    """One row of a range that could not be made."""

    row: int
    error: HopError


@dataclass(frozen=True, eq=False)
class Leaf:
    """One source and the steps on each of its samples; `fusion` stands for the first of them, where there is one."""

    source: Store
    chain: Chain
    fusion: Fusion | None
    memory: int | None = None  # what images may take while they are decoded; None for the budget of the process

    @functools.cached_property
    def _names(self) -> list[str]:
        """The fields beside the image."""
        schema = self.source.schema
        return [field.name for field in schema.fields if field != schema.image]

    @property
    def room(self) -> int:
        return process_budget().limit if self.memory is None else self.memory

    @property
    def kinds(self) -> Mapping[str, Kind]:
        return {field.name: field.kind for field in self.source.schema.fields}

    def seen(self, draws: Draws) -> Seen | None:
        """What can be worked out for many samples at once before they are read; see `fill`."""
        return None if self.fusion is None else seen(self.fusion, self.source, draws)

    def fill(self, draws: Draws, rows: Rows, watch: Stopwatch, known: Seen | None = None) -> list[Failure]:
        """Make every row of a range; gives those that failed, whose rows are undefined."""
        if self.fusion is None:
            return self._plain(draws, rows, watch)
        with ROOM.within(self.room):
            if len(self.chain) == self.fusion.links:
                return self._fused(self.fusion, draws, rows, watch, known)
            return self._half_fused(self.fusion, draws, rows, watch, known)

    # Everything in one call of the kernel

    def _fused(self, fusion: Fusion, draws: Draws, rows: Rows, watch: Stopwatch, known: Seen | None) -> list[Failure]:
        image = self.source.schema.image
        assert image is not None
        views, failed = images_of_range(fusion, self.source, draws, rows.arrays[image.name], watch, known)
        self._annotate(views, draws, rows, failed)
        watch.lap("collate", len(draws.index))
        return [self._failure(draws, row, missed) for row, missed in sorted(failed.items())]

    def _annotate(self, views: Views, draws: Draws, rows: Rows, failed: dict[int, Missed]) -> None:
        """The fields beside the image: columns at once where the source has them, else sample by sample.

        Rows that failed are left alone, and those that fail here are added to them.
        """
        names = self._names
        if not names or self._gathered(draws, rows, names):
            return
        kinds = {name: kind for name, kind in self.kinds.items() if name in names}
        for row, index in enumerate(draws.index.tolist()):
            if row in failed:
                continue
            try:
                sample = self.source.annotations(index)
            except (OSError, UnreadableImage) as error:
                failed[row] = Missed("decode", reason_of(error))
                continue
            if "boxes" in kinds.values():
                sample = apply_geometric(sample, kinds, views.span(row, row + 1))
            _put_fields(rows, row, sample, names)

    def _gathered(self, draws: Draws, rows: Rows, names: list[str]) -> bool:
        """Whether the source gave all of these fields at once."""
        if rows.layout.loose:
            return False
        base, indices = self.source.fields_at(draws.index)
        try:
            for name in names:
                values = base.gather(name, indices)
                if values is None:
                    return False
                rows.arrays[name][:] = values
        except (OSError, UnreadableImage):  # asked one by one, the sample that it was is told
            return False
        return True

    # The kernel makes images, the rest of the chain goes on with them

    def _half_fused(
        self, fusion: Fusion, draws: Draws, rows: Rows, watch: Stopwatch, known: Seen | None
    ) -> list[Failure]:
        image = self.source.schema.image
        assert image is not None
        frames = self.source.images_at(draws.index[:0])[2]
        shape = fusion.target.shape if frames == 1 else (frames, *fusion.target.shape)
        images = np.empty((len(draws.index), *shape), fusion.target.dtype)
        views, failed = images_of_range(fusion, self.source, draws, images, watch, known)
        failures = [self._failure(draws, row, missed) for row, missed in sorted(failed.items())]
        others = {name: kind for name, kind in self.kinds.items() if name != image.name}
        rest = self.chain[fusion.links :]
        for row in (row for row in range(len(images)) if row not in failed):
            draw = draws.part(row, row + 1)
            try:
                sample = self.source.annotations(int(draw.index[0]))
                if others:
                    sample = apply_geometric(sample, others, views.span(row, row + 1))
                sample[image.name] = images[row]
                sample = self._run(rest, sample, draw)
                watch.lap("transform")  # counted with its image
                self._put(rows, row, sample, draw)
            except HopError as error:
                failures.append(Failure(row, error))
            except (OSError, UnreadableImage) as error:
                failures.append(self._failure(draws, row, Missed("decode", reason_of(error))))
            watch.lap("collate", 1)
        return failures

    # Sample by sample

    def _plain(self, draws: Draws, rows: Rows, watch: Stopwatch) -> list[Failure]:
        failures = []
        for row in range(len(draws.index)):
            draw = draws.part(row, row + 1)
            try:
                self._put(rows, row, self.sample(draw, watch), draw)
            except HopError as error:
                failures.append(Failure(row, error))
            watch.lap("collate", 1)
        return failures

    def sample(self, draw: Draws, watch: Stopwatch) -> Sample:
        """One sample, the plain way: the reference for everything that is fused."""
        with ROOM.within(self.room), ROOM.sample():
            sample = self._decoded(int(draw.index[0]), watch)
            sample = self._run(self.chain, sample, draw)
        watch.lap("transform", 1)
        return sample

    def _decoded(self, index: int, watch: Stopwatch) -> Sample:
        hop = "read"
        try:
            raw = self.source.read(index)
            watch.lap("read", 1, _size(raw.data))
            hop = "decode"
            sample = self.source.decode(raw)
        except (HopError, OptionError):
            raise
        except Exception as error:
            raise HopError(hop, self.source.describe(index), reason_of(error), UNREADABLE) from error
        watch.lap("decode", 1)
        return sample

    def _run(self, chain: Chain, sample: Sample, draw: Draws) -> Sample:
        try:
            return run_chain(chain, sample, self.kinds, draw)
        except (HopError, PackError):
            raise
        except Exception as error:
            raise HopError("transform", self.source.describe(int(draw.index[0])), reason_in_function(error)) from error

    def _put(self, rows: Rows, row: int, sample: Sample, draw: Draws) -> None:
        try:
            rows.put(row, sample)
        except OptionError as error:
            raise HopError("collate", self.source.describe(int(draw.index[0])), str(error)) from error

    def _failure(self, draws: Draws, row: int, missed: Missed) -> Failure:
        sample = self.source.describe(int(draws.index[row]))
        return Failure(row, HopError(missed.hop, sample, missed.reason, UNREADABLE))


def _put_fields(rows: Rows, row: int, sample: Sample, names: list[str]) -> None:
    for name in names:
        if name in rows.arrays:
            rows.arrays[name][row] = sample[name]
        else:
            rows.loose[name][row] = sample[name]


def _size(data: Any) -> int:
    if isinstance(data, (bytes, bytearray, memoryview)):
        return len(data)
    return int(getattr(data, "nbytes", 0))


# One sample the way the engine makes it: through the kernel where the plan is fused, so that the bits are the same.


def made_sample(leaf: Leaf, index: int) -> Sample:
    """What a leaf without random steps makes of a sample: all its fields, and what it says of itself."""
    draw = Draws(np.zeros(1, np.int64), np.array([index]), np.array([index], np.uint64), np.zeros(1, np.int64))
    return leaf.sample(draw, Stopwatch()) if leaf.fusion is None else _fused_sample(leaf, leaf.fusion, draw)


def _fused_sample(leaf: Leaf, fusion: Fusion, draw: Draws) -> Sample:
    index, image = int(draw.index[0]), leaf.source.schema.image
    assert image is not None
    frames = leaf.source.images_at(draw.index[:0])[2]
    shape = fusion.target.shape if frames == 1 else (frames, *fusion.target.shape)
    pixels = np.empty((1, *shape), fusion.target.dtype)
    with ROOM.within(leaf.room):
        views, failed = images_of_range(fusion, leaf.source, draw, pixels, Stopwatch())
    if failed:
        raise HopError(failed[0].hop, leaf.source.describe(index), failed[0].reason, UNREADABLE)
    sample = leaf.source.annotations(index)
    others = {name: kind for name, kind in leaf.kinds.items() if name != image.name}
    if others:
        sample = apply_geometric(sample, others, views.span(0, 1))
    sample[image.name] = pixels[0]
    return _run(leaf, leaf.chain[fusion.links :], sample, draw)


def _run(leaf: Leaf, chain: Chain, sample: Sample, draw: Draws) -> Sample:
    try:
        return run_chain(chain, sample, leaf.kinds, draw)
    except (HopError, PackError):
        raise
    except Exception as error:
        raise HopError("transform", leaf.source.describe(int(draw.index[0])), reason_in_function(error)) from error
