"""Batch memory: it comes back, also for the next epoch, and never while somebody holds it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.flow.budget import Allowance, Budget
from penstock.flow.making.layout import Layout, Place
from penstock.flow.slots import MOST_RETURNED, Returned, SlotRing, private_memory
from penstock.flow.workers import executors as threads

ROWS = 4


@pytest.fixture
def layout() -> Layout:
    return Layout({"image": Place((32, 32), np.dtype(np.uint8))}, ())


def ring(layout: Layout, returned: Returned, rows: int = ROWS) -> SlotRing:
    return SlotRing(layout, rows, Allowance(Budget(2**30), None), returned=returned)


def taken(one: SlotRing) -> dict[str, Any]:
    found = one.take()
    assert found is not None
    return found[1]


def address(batch: dict[str, Any]) -> int:
    return int(batch["image"].ctypes.data)


def small_flow() -> ps.Flow:
    images = np.arange(16 * 8 * 8 * 3, dtype=np.uint8).reshape(16, 8, 8, 3)
    return ps.Flow(ps.Arrays(images), workers=1).batch(4)


def test_the_next_epoch_uses_the_memory_of_the_last_one(layout: Layout) -> None:
    returned = Returned()
    first = ring(layout, returned)
    arrays = taken(first)
    place = address(arrays)
    del arrays
    first.rest(2)
    assert address(taken(ring(layout, returned))) == place


def test_memory_that_is_held_is_not_given_to_another_epoch(layout: Layout) -> None:
    returned = Returned()
    held = taken(ring(layout, returned))["image"][1:]  # a view is enough
    held[:] = 7
    others = [taken(ring(layout, returned)) for _ in range(3)]
    for arrays in others:
        arrays["image"][:] = 9
    assert (held == 7).all()


def test_memory_of_batches_of_another_size_is_not_used(layout: Layout) -> None:
    returned = Returned()
    first = ring(layout, returned)
    taken(first)
    first.rest(2)
    assert taken(ring(layout, returned, rows=2 * ROWS))["image"].shape == (2 * ROWS, 32, 32)


def test_no_more_slots_wait_than_were_asked_for(layout: Layout) -> None:
    returned = Returned()
    first = ring(layout, returned)
    held = [taken(first) for _ in range(5)]
    places = [address(arrays) for arrays in held]
    del held
    first.rest(2)
    second = ring(layout, returned)
    again = [taken(second) for _ in range(5)]
    assert sum(address(arrays) in places for arrays in again) >= 2
    assert second.made == 3


def test_batches_that_the_user_drops_late_do_not_pile_up(layout: Layout) -> None:
    returned = Returned()
    first = ring(layout, returned)
    held = [taken(first) for _ in range(MOST_RETURNED + 3)]
    del held
    second = ring(layout, returned)
    again = [taken(second) for _ in range(MOST_RETURNED + 1)]
    assert len(again) == MOST_RETURNED + 1
    assert second.made == 1


def test_a_flow_makes_its_memory_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def counted(number: int, size: int) -> Any:
        made.append(number)
        return private_memory(number, size)

    monkeypatch.setattr(threads, "private_memory", counted)
    flow = small_flow().prefetch(1)
    for epoch in range(10):
        for _ in flow.epoch(epoch):
            pass
    assert len(made) < 10  # each epoch would make three of its own


def test_batches_kept_from_one_epoch_survive_the_next() -> None:
    flow = small_flow()
    kept = [batch["image"] for batch in flow.epoch(0)]
    copies = [image.copy() for image in kept]
    for number in range(1, 4):
        for _ in flow.epoch(number):
            pass
    assert all(np.array_equal(image, copy) for image, copy in zip(kept, copies, strict=True))


def test_two_epochs_at_once_share_no_memory() -> None:
    flow = small_flow()
    for _ in flow.epoch(0):
        pass
    for one, other in zip(flow.epoch(0), flow.epoch(1), strict=True):
        assert address(one) != address(other)
        assert np.array_equal(one["image"], other["image"])
