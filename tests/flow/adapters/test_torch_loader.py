"""Flows as torch takes them."""

from __future__ import annotations

import gc
import json
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.flow.small_flows import indices, numbers, pictures

import penstock as ps
from made_sources import EveryKind
from penstock.errors import OptionError
from penstock.flow.adapters.torch_loader import PinnedSlots, slot_of
from penstock.flow.flow import Flow


def flow_of_ten(**options: Any) -> Flow:
    """Ten batches of two, the last one short."""
    return numbers(19, **options).shuffle().batch(2)


def test_batches_are_tensors_over_the_memory_of_the_flow() -> None:
    flow = pictures(8).batch(4)
    expected = [{name: np.copy(value) for name, value in batch.items()} for batch in flow.epoch(0)]
    for batch, arrays in zip(flow.to_torch(), expected, strict=True):
        assert batch.keys() == arrays.keys()
        assert batch["image"].dtype == torch.uint8 and batch["index"].dtype == torch.int64
        for name, array in arrays.items():
            assert torch.equal(batch[name], torch.from_numpy(array))
    bare = next(iter(flow.epoch(0)))
    from penstock.flow.adapters.torch_loader import tensors_of

    assert tensors_of(bare, torch)["image"].data_ptr() == bare["image"].ctypes.data


def test_tensors_that_are_kept_are_never_overwritten() -> None:
    loader = numbers(64, workers=2).shuffle().batch(4).prefetch(1).to_torch()
    kept = [batch["index"][1:] for batch in loader]  # views of tensors, nothing else holds the batches
    gc.collect()
    assert [view.tolist() for view in kept] == [row[1:] for row in indices(numbers(64).shuffle().batch(4).epoch(0))]


def test_each_iteration_is_the_next_epoch() -> None:
    loader, flow = flow_of_ten().to_torch(), flow_of_ten()
    assert len(loader) == 10
    for epoch in range(3):
        assert indices(loader) == indices(flow.epoch(epoch))


def test_a_consumer_that_never_asks_past_the_end_gets_the_next_epoch_too() -> None:
    loader = flow_of_ten().to_torch()
    for epoch in range(2):
        batches = iter(loader)
        assert indices(next(batches) for _ in range(10)) == indices(flow_of_ten().epoch(epoch))
        assert loader.state_dict()["epoch"] == epoch + 1 and loader.state_dict()["batch"] == 0


class Told:
    """A sequence that notes when an epoch ended."""

    def __init__(self) -> None:
        self.ends = 0

    def __len__(self) -> int:
        return 3

    def __getitem__(self, number: int) -> Any:
        return np.full(2, number), np.zeros(2)

    def on_epoch_end(self) -> None:
        self.ends += 1


def test_the_epoch_is_over_when_its_last_batch_is_out() -> None:
    told = Told()
    batches = iter(ps.Flow(ps.from_sequence(told), executor="thread").to_torch())
    for ends in (0, 0, 1):
        next(batches)
        assert told.ends == ends


def test_an_epoch_that_was_left_early_is_followed_by_the_next() -> None:
    loader = flow_of_ten().to_torch()
    next(iter(loader))
    assert indices(loader) == indices(flow_of_ten().epoch(1))


@pytest.mark.parametrize("through_the_sampler", [True, False])
@pytest.mark.parametrize("begun", [True, False])
def test_set_epoch_counts_until_the_first_batch_is_asked_for(begun: bool, through_the_sampler: bool) -> None:
    loader = flow_of_ten().to_torch()
    batches = iter(loader) if begun else None
    (loader.sampler if through_the_sampler else loader).set_epoch(5)
    assert loader.state_dict()["epoch"] == 5
    assert indices(batches or loader) == indices(flow_of_ten().epoch(5))


@given(st.integers(0, 29), st.booleans(), st.sampled_from([1, 3]))
@settings(max_examples=25)
def test_a_state_is_followed_by_exactly_the_next_batch(taken: int, set_epoch: bool, world_size: int) -> None:
    def made() -> Any:
        flow = numbers(19).shuffle().batch(4).shard(0, world_size)
        return flow.to_torch()

    first = made()
    rows = [indices(first) for _ in range(2 + 30 // len(first))]
    loader = made()
    epoch, batch = divmod(taken, len(loader))
    for _ in range(epoch):
        list(loader)
    batches = iter(loader)
    for _ in range(batch):
        next(batches)
    state = json.loads(json.dumps(loader.state_dict()))
    assert len(json.dumps(state)) < 1000
    resumed = made()
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state
    if set_epoch:
        resumed.set_epoch(epoch)
    assert indices(resumed) == rows[epoch][batch:]
    assert indices(resumed) == rows[epoch + 1]


def test_set_epoch_of_another_epoch_leaves_what_was_loaded() -> None:
    loader = flow_of_ten().to_torch()
    next(iter(loader))
    resumed = flow_of_ten().to_torch()
    resumed.load_state_dict(loader.state_dict())
    resumed.set_epoch(1)
    assert indices(resumed) == indices(flow_of_ten().epoch(1))


def test_a_flow_without_end_goes_on_and_has_no_length() -> None:
    loader = numbers(6).shuffle().repeat().batch(4).to_torch()
    with pytest.raises(TypeError, match="no end"):
        len(loader)
    expected = indices(batch for batch, _ in zip(numbers(6).shuffle().repeat().batch(4), range(6), strict=False))
    first = [batch["index"].tolist() for batch, _ in zip(loader, range(3), strict=False)]
    state = loader.state_dict()
    assert state["batch"] == 4  # zip asked for one more than it gave
    loader.set_epoch(1)  # means nothing here
    assert first == expected[:3] and next(iter(loader))["index"].tolist() == expected[4]
    loader.load_state_dict(state)
    assert next(iter(loader))["index"].tolist() == expected[4]


def test_a_stream_has_batches_and_no_state() -> None:
    def count() -> Any:
        yield from ({"value": number} for number in range(5))

    loader = ps.Flow(ps.from_generator(count)).batch(2).to_torch()
    assert not hasattr(loader, "state_dict")
    with pytest.raises(TypeError, match="at its end only"):
        len(loader)
    for _ in range(2):
        assert [batch["value"].tolist() for batch in loader] == [[0, 1], [2, 3], [4]]


def test_texts_stay_lists_and_ragged_fields_are_lists_of_tensors() -> None:
    flow = ps.Flow(EveryKind(6), executor="thread").batch(3, shapes="ragged")
    batch, bare = next(iter(flow.to_torch())), next(iter(flow.epoch(0)))
    assert batch["caption"] == bare["caption"]
    assert [tuple(boxes.shape) for boxes in batch["boxes"]] == [boxes.shape for boxes in bare["boxes"]]
    assert batch["boxes"][1].dtype == torch.float32 and batch["flags"].dtype == torch.bool


def odd_arrays(batch: dict[str, Any]) -> dict[str, Any]:
    values = batch["value"]
    fixed = np.arange(len(values))
    fixed.flags.writeable = False
    return {
        "index": batch["index"],
        "reversed": values[::-1],
        "foreign": values.astype(">i4"),
        "fixed": fixed,
        "wide": values.astype(np.uint64),
        "name": np.array([str(value) for value in values]),
    }


def test_arrays_that_torch_cannot_share_are_copied() -> None:
    batch = next(iter(numbers(4).batch(4).map(odd_arrays, batched=True).to_torch()))
    bare = next(iter(numbers(4).batch(4)))["value"].tolist()
    assert batch["reversed"].tolist() == bare[::-1]
    assert batch["foreign"].tolist() == batch["wide"].tolist() == bare
    assert batch["fixed"].tolist() == [0, 1, 2, 3] and batch["name"] == [str(value) for value in bare]


def test_another_device_gets_the_batches() -> None:
    batch = next(iter(pictures(4).batch(2).to_torch("meta")))
    assert batch["image"].device.type == "meta" and batch["image"].shape[0] == 2


def test_mistakes_are_told_when_the_loader_is_made() -> None:
    with pytest.raises(OptionError, match="add .batch"):
        numbers(4).to_torch()
    with pytest.raises(OptionError, match="pin_memory='yes'"):
        numbers(4).batch(2).to_torch(pin_memory="yes")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="set_epoch\\(-1\\)"):
        numbers(4).batch(2).to_torch().set_epoch(-1)
    if not torch.cuda.is_available():
        with pytest.raises(OptionError, match="CUDA"):
            numbers(4).batch(2).to_torch(pin_memory=True)


class Recorded:
    """CUDA's two calls, written down."""

    def __init__(self, answer: int = 0) -> None:
        self.answer = answer
        self.registered: dict[int, int] = {}
        self.calls = 0

    def cudaHostRegister(self, address: int, size: int, flags: int) -> int:  # noqa: N802 - CUDA's name
        self.calls += 1
        if not self.answer:
            self.registered[address] = size
        return self.answer

    def cudaHostUnregister(self, address: int) -> int:  # noqa: N802 - CUDA's name
        del self.registered[address]
        return 0


def test_slots_are_pinned_once_and_whole() -> None:
    cudart = Recorded()
    pins = PinnedSlots(cudart)
    slots = 0
    for batch in pictures(40, workers=2).batch(4).prefetch(1).epoch(0):
        assert pins.pin(batch["image"]) and pins.pin(batch["label"])
        start = batch["image"].ctypes.data
        assert any(address <= start < address + size for address, size in cudart.registered.items())
        slots = max(slots, len(cudart.registered))
    assert cudart.calls == slots < 10
    pins.close()
    assert not cudart.registered


def test_memory_that_is_no_slot_or_that_cuda_refuses_is_not_pinned() -> None:
    assert slot_of(np.zeros(4)[1:]) is None
    assert not PinnedSlots(Recorded()).pin(np.zeros(4))
    batch = next(iter(pictures(4).batch(4).epoch(0)))
    refusing = PinnedSlots(Recorded(answer=2))
    assert not refusing.pin(batch["image"])
    refusing.close()
