"""The plan as it runs: an order, leaves that make samples, and how rows become batches. Workers hold a copy each."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock import seeds
from penstock.errors import HopError
from penstock.flow.making.chains import Chain, call_batched
from penstock.flow.making.fusing import Seen
from penstock.flow.making.layout import NUMBERS, Layout, Rows, collated, layout_of_sample
from penstock.flow.making.leaves import Leaf
from penstock.flow.measuring.metrics import Costs, Stopwatch
from penstock.flow.measuring.waits import locking
from penstock.flow.order.orders import Draws, Order
from penstock.flow.steps import Batch
from penstock.samples import RESERVED, Store

BLOCK = 4096  # positions are looked up in blocks: small ones cost more each, and for large ones all workers wait longer
KEPT_BLOCKS = 8
SUBSTITUTE_STEP = 2**32 - 1  # the number of no step of a plan
MOST_ATTEMPTS = 100  # substitutes that are bad too; more means that nearly everything is


class BadSample(NamedTuple):
    """A sample that could not be made, and what was put in its place."""

    member: int
    index: int  # type: ignore[assignment]  # shadows tuple.index, which nobody calls
    reason: str
    substitute: int


class Piece(NamedTuple):
    """Some positions that follow one another: their first row, what stands there, and what is known of it unread."""

    row: int
    draws: Draws
    known: Seen | None


class Made(NamedTuple):
    """What a worker says of a range: fields without a fixed size, what was bad, what it cost."""

    loose: dict[str, list[Any]]
    bad: tuple[BadSample, ...]
    costs: Costs
    batch: dict[str, Any] | None = None  # the finished batch, where functions work on whole batches


@dataclass(eq=False)
class Program:
    """Everything that a worker needs. Nothing here changes what a batch holds but its arguments."""

    seed: int
    order: Order
    leaves: tuple[Leaf, ...]
    layout: Layout
    batch: Batch
    batch_chain: Chain
    substitutes: bool
    numbers: tuple[str, ...]  # which of rows.NUMBERS a batch carries
    looks_ahead: bool = False  # whether views are worked out for whole blocks: where all positions are used here
    _blocks: OrderedDict[tuple[int, int], Piece] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __getstate__(self) -> dict[str, Any]:
        own = ("_blocks", "_lock", "locking_sources")
        return {name: value for name, value in vars(self).items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _blocks=OrderedDict(), _lock=threading.Lock())

    @functools.cached_property
    def locking_sources(self) -> tuple[Store, ...]:
        """The sources that make threads wait for one another."""
        return tuple(locking(leaf.source for leaf in self.leaves))

    @property
    def makes_whole_batches(self) -> bool:
        """Whether a worker must have a whole batch, because a function works on it."""
        return bool(self.batch_chain)

    # Which samples

    def draws(self, epoch: int, start: int, stop: int) -> Draws:
        """What stands at these positions of an epoch."""
        parts = [piece.draws for piece in self.pieces(epoch, start, stop)]
        if len(parts) == 1:
            return parts[0]
        return Draws(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def pieces(self, epoch: int, start: int, stop: int) -> list[Piece]:
        """The positions by blocks, each with its place in the range."""
        pieces = []
        for number in range(start // BLOCK, max(stop - 1, start) // BLOCK + 1):
            block, offset = self._block(epoch, number), number * BLOCK
            first, last = max(start, offset), min(stop, offset + BLOCK)
            known = None if block.known is None else block.known.span(first - offset, last - offset)
            pieces.append(Piece(first - start, block.draws.part(first - offset, last - offset), known))
        return pieces

    def _block(self, epoch: int, number: int) -> Piece:
        with self._lock:
            found = self._blocks.get((epoch, number))
            if found is None:
                stop = (
                    (number + 1) * BLOCK if self.order.length is None else min((number + 1) * BLOCK, self.order.length)
                )
                draws = self.look_up(epoch, np.arange(number * BLOCK, stop, dtype=np.int64))
                found = Piece(0, draws, self.leaves[0].seen(draws) if self.looks_ahead else None)
                self._blocks[epoch, number] = found
                while len(self._blocks) > KEPT_BLOCKS:
                    self._blocks.popitem(last=False)
            return found

    def look_up(self, epoch: int, positions: NDArray[np.int64]) -> Draws:
        return self.order.draws(np.full(len(positions), epoch, np.int64), positions)

    # What is in them

    def first_layout(self) -> Layout:
        """The layout of the first sample, which is made for it."""
        length, first = self.order.length, None
        for position in range(min(MOST_ATTEMPTS if self.substitutes else 1, 1 if length is None else length)):
            draw = self.look_up(0, np.array([position], np.int64))
            try:
                sample = self.leaves[int(draw.member[0])].sample(draw, Stopwatch())
            except HopError as error:
                if not self.substitutes:
                    raise
                first = first or error
                continue
            return layout_of_sample({name: value for name, value in sample.items() if name not in RESERVED})
        if first is None:
            return Layout({})
        raise HopError(
            first.hop, first.sample, f"{first.reason}; and so did all samples that were tried after it"
        ) from first

    def fill(self, epoch: int, start: int, stop: int, arrays: dict[str, NDArray[Any]]) -> Made:
        """Make the samples at these positions, writing into these rows of a slot."""
        watch = Stopwatch()
        rows = Rows(self.layout, arrays, stop - start)
        bad = self._fill_pieces(epoch, start, stop, rows, watch)
        return Made(rows.loose, bad, watch.costs)

    def whole(self, epoch: int, number: int, start: int, stop: int) -> Made:
        """Make a whole batch and let the functions on batches work on it."""
        rows = Rows.fresh(self.layout, stop - start)
        watch = Stopwatch()
        bad = self._fill_pieces(epoch, start, stop, rows, watch)
        batch = collated(rows.arrays, rows.loose, self.batch)
        watch.lap("collate")
        for link in self.batch_chain:
            batch = call_batched(link, batch, epoch, number)
        watch.lap("transform")
        return Made({}, bad, watch.costs, batch)

    def _fill_pieces(self, epoch: int, start: int, stop: int, rows: Rows, watch: Stopwatch) -> tuple[BadSample, ...]:
        pieces = self.pieces(epoch, start, stop)
        watch.lap("transform")
        bad: tuple[BadSample, ...] = ()
        for piece in pieces:
            part = rows if len(pieces) == 1 else rows.part(piece.row, piece.row + len(piece.draws.index))
            bad += self._fill(epoch, piece.draws, part, watch, piece.known)
        return bad

    def _fill(
        self, epoch: int, draws: Draws, rows: Rows, watch: Stopwatch, known: Seen | None
    ) -> tuple[BadSample, ...]:
        self._number(draws, rows)
        failures = [
            (row, error)
            for places, part in self._by_leaf(draws)
            for row, error in self._fill_leaf(places, part, rows, watch, known)
        ]
        if failures and not self.substitutes:
            raise min(failures, key=lambda failure: failure[0])[1]
        return tuple(self._substitute(epoch, draws, row, error, rows, watch) for row, error in failures)

    def _number(self, draws: Draws, rows: Rows) -> None:
        columns = {"index": draws.index, "draw": draws.key, "member": draws.member, "epoch": draws.epoch}
        for name in self.numbers:
            rows.arrays[name][:] = columns[name]

    def _by_leaf(self, draws: Draws) -> list[tuple[NDArray[np.int64] | None, Draws]]:
        if len(self.leaves) == 1 or (draws.member == draws.member[:1]).all():
            return [(None, draws)]
        members = np.flatnonzero(np.bincount(draws.member))
        places = [np.flatnonzero(draws.member == member) for member in members]
        return [(place, draws.at(place)) for place in places]

    def _fill_leaf(
        self,
        places: NDArray[np.int64] | None,
        draws: Draws,
        rows: Rows,
        watch: Stopwatch,
        known: Seen | None = None,
    ) -> list[tuple[int, HopError]]:
        if not len(draws.index):
            return []
        leaf = self.leaves[int(draws.member[0])]
        if places is None:
            return [(failure.row, failure.error) for failure in leaf.fill(draws, rows, watch, known)]
        made = Rows.fresh(self._made_layout, len(places))
        failures = leaf.fill(draws, made, watch)
        rows.scatter(places, made)
        return [(int(places[failure.row]), failure.error) for failure in failures]

    @property
    def _made_layout(self) -> Layout:
        """The fields that leaves make: all but the numbers of the samples."""
        fixed = {name: place for name, place in self.layout.fixed.items() if name not in NUMBERS}
        return Layout(fixed, self.layout.loose)

    # Bad samples

    def _substitute(
        self, epoch: int, draws: Draws, row: int, error: HopError, rows: Rows, watch: Stopwatch
    ) -> BadSample:
        """Put another sample of the same epoch there; which one follows from the bad one alone."""
        draw = draws.part(row, row + 1)
        for attempt in range(1, MOST_ATTEMPTS + 1):
            bits = int(seeds.sample_bits(self.seed, SUBSTITUTE_STEP, draw.epoch, draw.key, attempt)[0])
            other = self.look_up(epoch, np.array([bits % (self.order.length or 2**31)], np.int64))
            part = rows.part(row, row + 1)
            if not self._fill_leaf(None, other, part, watch):
                self._number(other, part)
                return BadSample(int(draw.member[0]), int(draw.index[0]), str(error), int(other.index[0]))
        raise HopError(
            error.hop, error.sample, f"{error.reason}; and {MOST_ATTEMPTS} substitutes for it failed too"
        ) from error
