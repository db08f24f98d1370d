"""Samples that are read before a flow runs on them."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import penstock as ps
from ailing_sources import Quick, flow_of
from made_sources import Pictures
from penstock.diagnosis.present import few_read
from penstock.samples import Subset, as_store


class Counted(Quick):
    """Says what was read of it; some of it cannot be."""

    def __init__(self, count: int = 64, unreadable: tuple[int, ...] = ()) -> None:
        super().__init__(count)
        self.unreadable = unreadable
        self.read_indices: list[int] = []

    def read(self, index: int) -> ps.Raw:
        self.read_indices.append(index)
        if index in self.unreadable:
            raise OSError("gone")
        return super().read(index)

    def will_need(self, indices: Any) -> int:
        raise AssertionError("it is in memory")

    def image_sizes(self, indices: Any) -> Any:
        return np.full((len(indices), 2), 16)


def test_each_sample_is_read_once_however_often_it_is_asked_for() -> None:
    source = Counted()
    some = few_read(as_store(source), 16)
    for epoch in range(3):
        assert sum(len(batch["index"]) for batch in flow_of(some).epoch(epoch)) == 16
    assert len(source.read_indices) == 16 == len(set(source.read_indices))


def test_batches_are_those_of_the_source() -> None:
    source = Pictures(20, "jpeg")
    half = Subset(source, np.arange(1, 20, 2))
    kept, plain = (
        [batch["image"].copy() for batch in ps.Flow(one).map(ps.augment.RandomResizedCrop(8)).batch(5).epoch(0)]
        for one in (few_read(half, 10), half)
    )
    assert all(np.array_equal(one, other) for one, other in zip(kept, plain, strict=True))


def test_what_the_source_offers_is_offered_but_asking_ahead() -> None:
    some: Any = few_read(as_store(Counted()), 8).source
    assert some.image_sizes([1, 2]).shape == (2, 2) and some.will_need(np.arange(2)) == 0
    assert some.gather("image", np.arange(2)) is None and len(some) == 64


def test_other_processes_get_what_was_read(tmp_path: Any) -> None:
    some = few_read(ps.pack(Pictures(12), tmp_path / "some.pack", split="train"), 12)
    again = pickle.loads(pickle.dumps(some))
    assert bytes(again.read(3).data) == bytes(some.read(3).data)


def test_what_cannot_be_read_is_left_to_the_flow() -> None:
    some = few_read(as_store(Counted(8, unreadable=(2,))), 8)
    with pytest.raises(ps.HopError, match="gone"):
        list(flow_of(some).epoch(0))
