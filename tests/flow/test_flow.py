"""A flow as its users see it: epochs, and a state that goes on exactly where it was taken."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import numpy as np
import pytest
from tests.flow import reference
from tests.flow.promised import Photos
from tests.flow.small_flows import flat, indices, numbers

import penstock as ps
from made_sources import Numbers, Pictures
from penstock.augment import RandomResizedCrop
from penstock.errors import OptionError


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> ps.Pack:
    folder = tmp_path_factory.mktemp("photos")
    return ps.pack(Photos(30), folder / "photos.pack", split="train=0.8,val=0.2", progress=False)


# The example of the README


def test_a_pack_becomes_batches_for_training(photos: ps.Pack) -> None:
    train = photos.split("train")
    flow = (
        ps.Flow(train, seed=7)
        .shuffle()
        .map(ps.augment.RandomResizedCrop(224))
        .map(ps.augment.HorizontalFlip())
        .batch(8)
    )
    batches = list(flow.epoch(0))
    assert len(batches) == len(flow) == -(-len(train) // 8)
    first = batches[0]
    assert first["image"].dtype == np.uint8 and first["image"].shape == (8, 224, 224, 3)
    assert first["label"].dtype == np.int64 and first["label"].shape == (8,)
    assert sorted(flat(batches)) == list(range(len(train)))
    labels = train.column("label")
    assert all(batch["label"].tolist() == labels[batch["index"]].tolist() for batch in batches)


# Epochs


def test_iterating_gives_the_next_epoch_each_time() -> None:
    flow = numbers().shuffle().batch(6)
    first, second = flat(flow), flat(flow)
    assert first != second and sorted(first) == sorted(second) == list(range(20))
    assert (first, second) == (flat(flow.epoch(0)), flat(flow.epoch(1)))


def test_an_epoch_is_the_same_whenever_it_is_asked_for() -> None:
    flow = numbers().shuffle().batch(6)
    assert flat(flow.epoch(5)) == flat(flow.epoch(5)) == flat(numbers().shuffle().batch(6).epoch(5))


def test_after_a_break_comes_the_next_epoch() -> None:
    flow = numbers().shuffle().batch(6)
    for _ in flow:
        break
    assert flat(flow) == flat(flow.epoch(1))


def test_two_epochs_of_one_flow_may_run_at_once() -> None:
    flow = numbers(30).shuffle().batch(4)
    together = list(zip(flow.epoch(0), flow.epoch(1), strict=True))
    assert flat(one for one, _ in together) == flat(flow.epoch(0))
    assert flat(other for _, other in together) == flat(flow.epoch(1))


def test_an_epoch_of_nothing_has_no_batches() -> None:
    for flow in (numbers(0).batch(4), numbers().take(0).batch(4), numbers().shuffle().batch(50, drop_last=True)):
        assert (list(flow), list(flow), len(flow)) == ([], [], 0)


@pytest.mark.parametrize("number", [-1, 1.5, True, "1"])
def test_an_epoch_is_a_number_from_0(number: Any) -> None:
    with pytest.raises(OptionError, match="must be a whole number from 0"):
        numbers().batch(4).epoch(number)


def test_a_plan_is_never_changed() -> None:
    plan = numbers().batch(4)
    longer = plan.take(1)
    assert (len(plan), len(longer)) == (5, 1)
    next(iter(longer))
    assert plan.state()["batch"] == 0


# Where it is


def test_a_state_goes_on_in_the_middle_and_ends_where_the_epoch_ends() -> None:
    flow = numbers().shuffle().batch(6)
    epoch = flow.epoch(3)
    seen = [next(epoch)["index"].tolist() for _ in range(2)]
    state = flow.state()
    other = numbers().shuffle().batch(6)
    other.restore(state)
    assert seen + indices(other.epoch()) == indices(flow.epoch(3))
    assert indices(other.epoch()) == indices(flow.epoch(4))


def test_a_state_at_the_end_goes_on_with_the_next_epoch() -> None:
    flow = numbers().shuffle().batch(6)
    list(flow.epoch(3))
    state = flow.state()
    assert (state["epoch"], state["batch"]) == (4, 0)
    flow.restore(state)
    assert indices(flow) == indices(flow.epoch(4))


def test_a_state_before_the_first_batch_is_the_beginning() -> None:
    flow = numbers().shuffle().batch(6)
    state = flow.state()
    expected = indices(flow)
    flow.restore(state)
    assert indices(flow) == expected


def test_a_state_is_small_and_survives_json(photos: ps.Pack) -> None:
    flow = ps.Flow(photos, seed=2**63).shuffle().map(RandomResizedCrop(16)).batch(4)
    running = flow.epoch(10**9)
    next(running)
    text = json.dumps(flow.state())
    assert len(text) < 1024
    flow.restore(json.loads(text))
    assert reference.differences(next(flow.epoch()), next(running)) == []


def test_the_first_batch_after_a_restore_costs_no_batches_before_it() -> None:
    read: list[int] = []

    class Watched(Numbers):
        def read(self, index: int) -> ps.Raw:
            read.append(index)
            return super().read(index)

    flow = ps.Flow(Watched(1000), workers=0).batch(10).prefetch(1)
    flow.restore({**flow.state(), "batch": 90})
    read.clear()
    assert next(flow.epoch())["index"].tolist() == list(range(900, 910))
    assert set(read) <= {0, *range(900, 1000)}  # sample 0 told what a batch looks like


@pytest.mark.parametrize(
    "other",
    [
        lambda: numbers(21).shuffle().batch(6),
        lambda: numbers().batch(6),
        lambda: numbers().shuffle().batch(5),
        lambda: ps.Flow(Numbers(20), seed=8).shuffle().batch(6),
        lambda: numbers().shuffle().map(lambda sample: sample).batch(6),
        lambda: numbers().shuffle().batch(6, drop_last=True),
        lambda: numbers(on_bad_sample="substitute").shuffle().batch(6),
    ],
)
def test_a_state_of_another_plan_is_refused(other: Any) -> None:
    state = numbers().shuffle().batch(6).state()
    with pytest.raises(OptionError, match="belongs to another plan .* source, seed, steps and global batch"):
        other().restore(state)


def test_how_a_flow_runs_is_no_part_of_its_state() -> None:
    state = numbers().shuffle().batch(6).state()
    numbers(workers=3, executor="process", memory="1 MB").shuffle().batch(6).prefetch(3).shard(1, 2).restore(state)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batch": 99}, "at batch 99, and an epoch here has 4"),
        ({"batch": -1}, "whole numbers from 0"),
        ({"epoch": 1.5}, "whole numbers from 0"),
        ({"epoch": True}, "whole numbers from 0"),
        ({"version": 7}, "version 7; this Penstock reads version 1"),
        ({"more": 1}, "restore takes what state\\(\\) gave"),
        ({"decoder": "libjpeg 6"}, "allow_other=True"),
    ],
)
def test_a_state_that_was_edited_is_refused(change: dict[str, Any], words: str) -> None:
    flow = numbers().shuffle().batch(6)
    with pytest.raises(OptionError, match=words):
        flow.restore({**flow.state(), **change})


@pytest.mark.parametrize("state", [None, 5, [], {}, "state"])
def test_what_is_no_state_is_refused(state: Any) -> None:
    with pytest.raises(OptionError, match="restore takes what"):
        numbers().batch(6).restore(state)


def test_a_state_of_another_decoder_is_taken_when_the_user_says_so() -> None:
    flow = numbers().shuffle().batch(6)
    flow.restore({**flow.state(), "decoder": "libjpeg 6", "batch": 2}, allow_other=True)
    assert indices(flow.epoch()) == indices(flow.epoch(0))[2:]


def test_other_ranks_go_on_with_the_same_batch_behind_one_that_they_leave_out() -> None:
    def ranks(count: int) -> list[ps.Flow]:
        plan = numbers(9).batch(4).repeat(3)
        return [plan.shard(rank, count) for rank in range(count)]

    (one,) = ranks(1)
    running = one.epoch(0)
    list(islice(running, 4))  # the third one has a single sample, too few for two ranks
    two = ranks(2)
    for flow in two:
        flow.restore(one.state())
    shares = [flow.epoch() for flow in two]
    assert flat(next(share) for share in shares) == next(running)["index"].tolist() == [4, 5, 6, 7]
    one.restore(two[1].state())
    assert indices(one.epoch())[0] == [0, 1, 2, 3]  # two ranks left the single one out


def test_more_ranks_go_on_with_nothing_where_they_leave_the_last_batch_out() -> None:
    flow = numbers(9).batch(4)
    list(islice(flow.epoch(0), 2))
    two = numbers(9).batch(4).shard(0, 2)
    two.restore(flow.state())
    assert list(two.epoch()) == []
    assert indices(two.epoch()) == indices(two.epoch(1))


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_seeds_of_more_than_64_bits_are_refused(seed: int) -> None:
    with pytest.raises(OptionError, match="must be a number of 64 bits"):
        ps.Flow(Pictures(4), seed=seed)


def test_the_largest_epoch_runs_and_the_next_is_refused() -> None:
    flow = ps.Flow(Pictures(4), workers=0).shuffle().batch(4)
    assert sorted(next(flow.epoch(2**63 - 1))["index"].tolist()) == [0, 1, 2, 3]
    with pytest.raises(OptionError, match="is too large"):
        flow.epoch(2**63)
