"""Batches that are kept stay valid, those that are dropped make room, and a budget is kept to."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from tests.flow import reference
from tests.flow.promised import Photos
from tests.flow.small_flows import flat, indices, numbers, pictures

import penstock as ps
from made_sources import Pictures
from penstock.augment import Resize
from penstock.errors import HopError, OptionError
from penstock.flow.budget import Budget, process_budget


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> ps.Pack:
    folder = tmp_path_factory.mktemp("photos")
    return ps.pack(Photos(30), folder / "photos.pack", split="train=0.8,val=0.2", progress=False)


def test_batches_that_are_kept_stay_as_they_were(photos: ps.Pack) -> None:
    flow = ps.Flow(photos, workers=2).repeat(8).map(Resize((64, 64))).batch(4).prefetch(2)
    kept, copies = [], []
    for number, batch in enumerate(flow):
        if number % 2:
            kept.append(batch)
            copies.append({name: values.copy() for name, values in batch.items()})
    assert len(kept) == 30
    assert not any(reference.differences(one, copy) for one, copy in zip(kept, copies, strict=True))


def test_one_field_that_is_kept_keeps_its_batch() -> None:
    images = [batch["image"][1:2] for batch in pictures(40).repeat(4).batch(4)]
    expected = [batch["image"][1:2].copy() for batch in pictures(40).repeat(4).batch(4)]
    assert all(np.array_equal(image, other) for image, other in zip(images, expected, strict=True))


def test_a_batch_may_be_written_to(photos: ps.Pack) -> None:
    for batch in ps.Flow(photos).map(Resize((8, 8))).batch(4):
        batch["image"] += 1
        batch["label"][:] = 0


def test_memory_goes_round_when_batches_are_dropped() -> None:
    places = {batch["image"].ctypes.data for batch in pictures(workers=1).repeat(20).batch(4).prefetch(1)}
    assert len(places) <= 4


def test_a_batch_that_does_not_fit_is_an_error_with_numbers() -> None:
    flow = pictures(400, memory="100 KB").batch(300)
    with pytest.raises(OptionError, match=r'one batch takes 0\.7 MB.*memory="4 GB"'):
        next(flow.epoch())


def test_a_small_budget_means_fewer_batches_ahead_not_an_error() -> None:
    flow = pictures(40, memory="25 KB").batch(8).prefetch(4)  # room for one batch
    assert flat(flow) == list(range(40))


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> Budget:
    budget = Budget(60_000)
    monkeypatch.setattr("penstock.flow.running.process_budget", lambda: budget)
    return budget


def test_two_flows_that_share_a_small_budget_take_turns(small_budget: Budget) -> None:
    both = zip(pictures(40).batch(8), pictures(40).batch(8), strict=True)  # 18,432 bytes of pixels each
    assert [one["index"].tolist() for one, _ in both] == indices(pictures(40).batch(8))
    gc.collect()
    assert small_budget.taken == 0


def test_the_budget_is_given_back_however_an_epoch_ends(small_budget: Budget) -> None:
    for _ in pictures(40).batch(8):
        break
    epoch = pictures(40).batch(8).epoch(0)
    next(epoch)
    del epoch, _
    with pytest.raises(HopError):
        list(ps.Flow(Pictures(40, broken=(3,))).batch(8))
    gc.collect()
    assert small_budget.taken == 0


@pytest.mark.parametrize("memory", [0, -5, "much", "5 apples", True, 1.5])
def test_a_memory_that_is_no_size_is_refused(memory: Any) -> None:
    with pytest.raises(OptionError, match='"auto", a number of bytes, or a size such as "2 GB"'):
        numbers(memory=memory)


def test_all_flows_share_one_budget() -> None:
    assert process_budget() is process_budget()
