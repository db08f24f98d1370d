"""Flows as JAX takes them, with the real one, on several devices of the CPU."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pytest
from tests.flow.small_flows import indices, numbers, pictures

import penstock as ps
from made_sources import EveryKind

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")  # read when JAX is first used
jax = pytest.importorskip("jax", reason="JAX is not installed; make test-peers has it")
pytestmark = pytest.mark.filterwarnings("ignore")  # of JAX' own


def flow() -> ps.Flow:
    return numbers(11).shuffle().batch(2)


def test_batches_are_device_arrays_and_each_iteration_an_epoch() -> None:
    batches = flow().to_jax()
    assert len(batches) == 6
    for epoch in range(2):
        found = list(batches)
        assert all(isinstance(batch["value"], jax.Array) for batch in found)
        assert indices(found) == indices(flow().epoch(epoch))


def test_arrays_that_are_kept_are_never_overwritten() -> None:
    plan = pictures(40, workers=2).shuffle().batch(4).prefetch(1)
    expected = [np.copy(batch["image"]) for batch in plan.epoch(0)]
    plan = pictures(40, workers=2).shuffle().batch(4).prefetch(1)
    kept = [batch["image"] for batch in plan.to_jax()]
    assert all(np.array_equal(found, one) for found, one in zip(kept, expected, strict=True))


@pytest.mark.parametrize("taken", [0, 1, 5, 6, 8])
def test_a_state_counts_what_was_delivered_not_what_is_on_its_way(taken: int) -> None:
    rows = [*indices(flow().epoch(0)), *indices(flow().epoch(1)), *indices(flow().epoch(2))]
    first = flow().to_jax()
    epoch, batch = divmod(taken, 6)
    for _ in range(epoch):
        list(first)
    iterator = iter(first)
    for _ in range(batch):
        next(iterator)
    resumed = flow().to_jax()
    resumed.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert [*indices(resumed), *indices(resumed)][:6] == rows[taken : taken + 6]


def test_set_epoch_says_what_comes_next() -> None:
    batches = flow().to_jax()
    batches.set_epoch(4)
    assert indices(batches) == indices(flow().epoch(4))


def test_a_sharding_spreads_batches_over_devices() -> None:
    if len(jax.devices()) < 2:
        pytest.skip("JAX was started with one device")
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("batch",))
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch"))
    batch = next(iter(pictures(8).batch(4).to_jax(spread)))
    assert batch["image"].sharding == spread and len(batch["image"].addressable_shards) == 2
    assert batch["image"].addressable_shards[0].data.shape[0] == 2
    assert np.array_equal(batch["image"], next(iter(pictures(8).batch(4)))["image"])


def test_texts_and_ragged_fields_are_lists() -> None:
    plan = ps.Flow(EveryKind(6), executor="thread").batch(3, shapes="ragged")
    batch, bare = next(iter(plan.to_jax())), next(iter(plan.epoch(0)))
    assert batch["caption"] == bare["caption"]
    assert [boxes.shape for boxes in batch["boxes"]] == [boxes.shape for boxes in bare["boxes"]]


def far(value: Any) -> Any:
    return value + 2**40


def test_numbers_that_jax_would_cut_are_refused() -> None:
    with pytest.raises(ps.OptionError, match="jax_enable_x64"):
        next(iter(numbers(4).map(far, field="value").batch(2).to_jax()))
