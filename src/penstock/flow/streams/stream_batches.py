"""Samples of a stream between their reading and their making: what stands in the places of an order and a source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from penstock.flow.making.program import Piece, Program
from penstock.flow.order.batches import Dealt
from penstock.flow.order.dealing import Deal
from penstock.flow.order.draws import Draws, Numbers
from penstock.flow.streams.feeding import Item, sample_bytes
from penstock.flow.streams.stream_reading import Reading
from penstock.samples import Raw, Sample, Schema, Store


@dataclass
class Held:
    """Samples that were read and wait for a worker, by position."""

    reading: Reading
    items: dict[int, Item] = field(default_factory=dict)
    samples: dict[int, Sample] = field(default_factory=dict)  # by their number

    def put(self, position: int, item: Item) -> None:
        self.items[position] = item
        self.samples[item.number] = item.sample

    def take(self, number: int) -> Sample:
        sample = self.samples.pop(number)
        self.reading.give_back(sample_bytes(sample))
        return sample


@dataclass(frozen=True)
class HeldOrder:
    """Which sample stands at a position: that which was put there."""

    held: Held
    length: int | None = None

    def draws(self, epochs: Numbers, positions: Numbers) -> Draws:
        numbers = np.array([self.held.items.pop(position).number for position in positions.tolist()], np.int64)
        return Draws(np.zeros(len(positions), np.int64), numbers, numbers.astype(np.uint64), epochs)


class HeldSource(Store):
    """Gives each sample once."""

    def __init__(self, schema: Schema, held: Held) -> None:
        self._schema, self.held = schema, held

    def __len__(self) -> int:
        return 0

    def read(self, index: int) -> Raw:
        return Raw(index, self.held.take(index))

    def decode(self, raw: Raw) -> Sample:
        return dict(raw.data)


class StreamProgram(Program):
    """What stands at a position is known when it was read, and asked for once."""

    def pieces(self, epoch: int, start: int, stop: int) -> list[Piece]:
        return [Piece(0, self.look_up(epoch, np.arange(start, stop, dtype=np.int64)), None)]


class StreamBatches:
    """The batches of an epoch as they are read; `deal` says how they are cut."""

    count = None
    is_endless = False

    def __init__(self, deal: Deal, reading: Reading) -> None:
        self.deal, self._reading = deal, reading
        self.held = Held(reading)
        self._next: Dealt | None = None
        self._position = 0

    def begin(self) -> bool:
        """Wait for the first; False where the stream has nothing."""
        self._next = self._fetched()
        return self._next is not None

    @property
    def is_ready(self) -> bool:
        """Whether the next batch can be had without waiting."""
        return self._next is not None or self._reading.is_ready

    def numbers(self, first: int) -> Iterator[int]:
        """One number after the other, as long as the stream goes on; `at` then says what it stands for."""
        number = first
        while True:
            self._next = self._next or self._fetched()
            if self._next is None:
                return
            yield number
            number += 1

    def at(self, epoch: int, number: int) -> Dealt:
        """The batch whose number was given last."""
        dealt, self._next = self._next, None
        assert dealt is not None
        return dealt

    def _fetched(self) -> Dealt | None:
        group = self._reading.next()
        if group is None:
            return None
        start = self._position
        for item in group.items:
            self.held.put(self._position, item)
            self._position += 1
        return Dealt(group.epoch, group.number, start, self._position)
