"""A flow as its users see it: plans, epochs, batches, states."""

from __future__ import annotations

import gc
import json
import os
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.flow import reference
from tests.flow.promised import Photos

import penstock as ps
from made_sources import EveryKind, Numbers, Pictures, Reels
from penstock.augment import CenterCrop, Grey, HorizontalFlip, Normalize, RandomCrop, RandomResizedCrop, Resize
from penstock.errors import DataError, HopError, RecipeError
from penstock.flow.budget import Budget, process_budget


def pictures(count: int = 20, **options: Any) -> ps.Flow:
    return ps.Flow(Pictures(count), seed=7, **options)


def numbers(count: int = 20, **options: Any) -> ps.Flow:
    return ps.Flow(Numbers(count), seed=7, **options)


def indices(batches: Any) -> list[list[int]]:
    return [batch["index"].tolist() for batch in batches]


def flat(batches: Any) -> list[int]:
    return [index for batch in indices(batches) for index in batch]


def assert_as_reference(flow: ps.Flow, epoch: int = 0) -> None:
    found, expected = list(flow.epoch(epoch)), list(reference.batches(flow, epoch))
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        assert not reference.differences(one, other)


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
    with pytest.raises(RecipeError, match="must be a whole number from 0"):
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
    with pytest.raises(RecipeError, match="belongs to another plan .* source, seed, steps and global batch"):
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
    with pytest.raises(RecipeError, match=words):
        flow.restore({**flow.state(), **change})


@pytest.mark.parametrize("state", [None, 5, [], {}, "state"])
def test_what_is_no_state_is_refused(state: Any) -> None:
    with pytest.raises(RecipeError, match="restore takes what"):
        numbers().batch(6).restore(state)


def test_a_state_of_another_decoder_is_taken_when_the_user_says_so() -> None:
    flow = numbers().shuffle().batch(6)
    flow.restore({**flow.state(), "decoder": "libjpeg 6", "batch": 2}, allow_other=True)
    assert indices(flow.epoch()) == indices(flow.epoch(0))[2:]


def test_more_ranks_go_on_with_nothing_where_they_leave_the_last_batch_out() -> None:
    flow = numbers(9).batch(4)
    list(islice(flow.epoch(0), 2))
    two = numbers(9).batch(4).shard(0, 2)
    two.restore(flow.state())
    assert list(two.epoch()) == []
    assert indices(two.epoch()) == indices(two.epoch(1))


# Batches and their memory


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
    with pytest.raises(RecipeError, match=r'one batch takes 0\.7 MB.*memory="4 GB"'):
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
    with pytest.raises(RecipeError, match='"auto", a number of bytes, or a size such as "2 GB"'):
        numbers(memory=memory)


def test_all_flows_share_one_budget() -> None:
    assert process_budget() is process_budget()


# One sample


def test_a_flow_gives_sample_i_of_its_plan() -> None:
    flow = pictures().shuffle().map(RandomCrop(16)).batch(4)
    first = next(flow.epoch(2))
    flow.epoch(2)
    for position in range(4):
        sample = flow[position]
        assert np.array_equal(sample["image"], first["image"][position])
        assert (sample["label"], sample["index"]) == (first["label"][position], first["index"][position])
        assert sample["key"] == f"pictures/{sample['index']}.png"
    assert flow[-1]["index"] == flow[19]["index"]


def test_a_sample_needs_no_batch_and_must_exist() -> None:
    assert numbers()[3]["value"] == 3
    assert numbers().repeat()[10**9]["value"] == 0
    with pytest.raises(IndexError, match="sample 20 does not exist: there are 20 samples"):
        numbers()[20]


# How many


def test_length_counts_batches() -> None:
    assert len(numbers().batch(6)) == 4
    assert len(numbers().batch(6, drop_last=True)) == 3
    assert len(numbers().repeat(3).batch(6)) == 10
    assert len(numbers().batch(6).repeat(3)) == 12
    assert len(numbers().batch(3).shard(1, 3)) == 6  # the last batch of 2 is too small for 3 ranks
    assert len(numbers().batch(3).shard(1, 3, keep_all=True)) == 7


def test_a_flow_without_end_has_no_length_and_goes_on() -> None:
    flow = numbers().shuffle().repeat().batch(6)
    with pytest.raises(RecipeError, match="this flow has no end"):
        len(flow)
    found = flat(islice(flow, 30))
    passes = [found[start : start + 20] for start in range(0, 180, 20)]
    assert all(sorted(one) == list(range(20)) for one in passes) and len({tuple(one) for one in passes}) == 9
    assert passes[2] == flat(numbers().shuffle().batch(6).epoch(2))


def test_a_flow_without_end_resumes_and_has_one_epoch() -> None:
    for flow in (numbers().shuffle().repeat().batch(6), numbers().shuffle().batch(6).repeat()):
        running = flow.epoch()
        list(islice(running, 11))
        state = flow.state()
        expected = next(running)["index"].tolist()
        flow.restore(state)
        assert next(flow.epoch())["index"].tolist() == expected
        with pytest.raises(RecipeError, match="a flow without end has one epoch, number 0"):
            flow.epoch(1)


def test_take_and_skip_count_samples_before_batch_and_batches_after_it() -> None:
    assert flat(numbers().skip(3).take(5).batch(2)) == [3, 4, 5, 6, 7]
    assert flat(numbers().take(5).skip(3).batch(2)) == [3, 4]
    assert indices(numbers().batch(4).skip(1).take(2)) == [[4, 5, 6, 7], [8, 9, 10, 11]]
    assert indices(numbers().batch(4).take(2).repeat(2)) == [[0, 1, 2, 3], [4, 5, 6, 7]] * 2
    assert flat(numbers().repeat().take(25).batch(25)) == [*range(20), *range(5)]


def test_take_after_shuffle_takes_others_in_each_epoch() -> None:
    flow = numbers(100).shuffle().take(10).batch(10)
    assert set(flat(flow.epoch(0))) != set(flat(flow.epoch(1)))
    same = numbers(100).take(10).shuffle().batch(10)
    assert sorted(flat(same.epoch(0))) == sorted(flat(same.epoch(1))) == list(range(10))


def test_repeated_passes_are_augmented_in_other_ways() -> None:
    flow = pictures(4).map(RandomCrop(8)).repeat(2).batch(4)
    first, second = list(flow)
    assert first["index"].tolist() == second["index"].tolist()
    assert not np.array_equal(first["image"], second["image"])


def test_ranks_share_every_batch_and_leave_nothing_out() -> None:
    whole = indices(numbers(22).shuffle().batch(6))
    ranks = [indices(numbers(22).shuffle().batch(6).shard(rank, 4)) for rank in range(4)]
    assert [[index for share in shares for index in share] for shares in zip(*ranks, strict=True)] == whole
    assert [[len(share) for share in rank] for rank in ranks] == [
        [1, 1, 1, 1],
        [2, 2, 2, 1],
        [1, 1, 1, 1],
        [2, 2, 2, 1],
    ]


def test_evaluation_leaves_nothing_out_even_where_a_share_is_empty() -> None:
    ranks = [list(pictures(9).batch(4).shard(rank, 3, keep_all=True)) for rank in range(3)]
    assert sorted(index for rank in ranks for index in flat(rank)) == list(range(9))
    empty = ranks[0][-1]
    assert empty["image"].shape == (0, 24, 32, 3) and empty["label"].shape == (0,)


# Which samples


def test_where_takes_names_numbers_lists_and_functions() -> None:
    def labels(flow: ps.Flow) -> set[int]:
        return {label for batch in flow.batch(4) for label in batch["label"].tolist()}

    assert labels(pictures().where(label="b")) == {1}
    assert labels(pictures().where(label=2)) == {2}
    assert labels(pictures().where(label=["a", "c"])) == labels(pictures().where(label={0, 2})) == {0, 2}
    assert labels(pictures().where(label=lambda column: column > 0)) == {1, 2}
    assert flat(pictures().where(label="a", key=lambda keys: keys != "pictures/0.png").batch(4)) == [
        3,
        6,
        9,
        12,
        15,
        18,
    ]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({}, 'where needs at least one column, such as where\\(label="cat"\\)'),
        ({"label": "bb"}, "there is no class 'bb'; there are a, b, c. Did you mean 'b'|there is no class 'bb'"),
        ({"colour": 3}, "there is no stored column 'colour'"),
        ({"label": lambda column: True}, "must give as many True or False"),
    ],
)
def test_a_wrong_where_says_what_there_is(columns: dict[str, Any], words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        list(pictures().where(**columns).batch(4))


def test_balanced_sampling_draws_every_class_equally_often() -> None:
    class Rare(Pictures):
        def annotations(self, index: int) -> dict[str, Any]:
            return {**super().annotations(index), "label": 0 if index < 95 else 1}

    flow = ps.Flow(Rare(100)).sample("balanced", count=600).map(Resize((2, 2))).batch(600)
    (batch,) = flow
    assert 240 < np.count_nonzero(batch["label"] == 1) < 360
    assert len(set(batch["draw"].tolist())) == 600  # a sample that comes twice is augmented in two ways


def test_sampling_by_class_weights_leaves_others_out() -> None:
    flow = pictures(30).sample({"a": 1, "c": 3}, count=200).batch(200)
    (batch,) = flow
    counts = np.bincount(batch["label"], minlength=3)
    assert counts[1] == 0 and 100 < counts[2] < 190
    assert len(flow) == 1 and len(pictures(30).sample([1.0] * 30).batch(5)) == 6


# What is in a batch


def test_padded_batches_tell_sizes_and_ragged_ones_keep_them() -> None:
    for shapes in ("padded", "ragged"):
        assert_as_reference(ps.Flow(EveryKind(9)).batch(4, shapes=shapes, fill=2))
    batch = next(iter(ps.Flow(EveryKind(9)).batch(4, shapes="padded", fill=1)))
    assert batch["boxes"].shape == (4, 3, 4) and batch["boxes_size"].tolist() == [[0, 4], [1, 4], [2, 4], [3, 4]]
    assert (batch["boxes"][0] == 1).all()
    ragged = next(iter(ps.Flow(EveryKind(9)).batch(4, shapes="ragged")))
    assert ragged["boxes"].offsets.tolist() == [0, 0, 1, 3, 6] and ragged["boxes"].values.shape == (6, 4)
    assert [image.shape for image in ragged["image"]] == [(24, 32, 3), (25, 33, 3), (26, 34, 3), (27, 32, 3)]


def test_a_fill_that_a_field_cannot_hold_is_refused() -> None:
    for fill in (-1, 300, 0.5, float("nan")):
        with pytest.raises(RecipeError, match="'image' is uint8, which cannot hold"):
            list(ps.Flow(EveryKind(9)).batch(4, shapes="padded", fill=fill))


def test_texts_come_as_a_list() -> None:
    batch = next(iter(ps.Flow(EveryKind(9)).batch(3, shapes="ragged")))
    assert batch["caption"] == ["número 0", "número 1", "número 2"]


def test_a_batch_has_no_key_but_a_sample_has() -> None:
    flow = pictures().batch(4)
    assert set(next(iter(flow))) == {"image", "label", "index"}
    assert {"key", "group"} <= set(flow[0])


@pytest.mark.parametrize("shapes", ["fixed"])
def test_fields_of_another_size_need_a_word(shapes: Any) -> None:
    with pytest.raises(RecipeError, match='shapes="ragged".*shapes="padded"'):
        list(ps.Flow(EveryKind(9)).map(Resize((8, 8))).batch(4, shapes=shapes))


def test_images_of_different_sizes_name_the_sample_and_the_remedy() -> None:
    with pytest.raises(HopError, match="sample 1 .*augment.Resize, augment.CenterCrop"):
        list(ps.Flow(Photos(9, "png")).batch(4))


def test_normalised_images_are_float_with_channels_first(photos: ps.Pack) -> None:
    flow = ps.Flow(photos, fast_decode=False).map(CenterCrop(16)).map(Normalize("pack")).batch(8)
    batch = next(iter(flow))
    assert batch["image"].dtype == np.float32 and batch["image"].shape == (8, 3, 16, 16)
    assert_as_reference(flow)
    assert_as_reference(ps.Flow(photos, fast_decode=False).map(CenterCrop(16)).map(Grey()).map(Normalize()).batch(8))


# Functions of the user


def doubled(sample: dict[str, Any]) -> dict[str, Any]:
    return {**sample, "value": sample["value"] * 2}


def shaken(value: Any, rng: np.random.Generator) -> Any:
    return value + rng.integers(0, 1000)


def test_a_function_changes_samples_fields_or_batches() -> None:
    assert next(iter(numbers().map(doubled).batch(3)))["value"].tolist() == [0, 2, 4]
    assert next(iter(numbers().map(lambda value: value + 1, field="value").batch(3)))["value"].tolist() == [1, 2, 3]
    summed = numbers().batch(3).map(lambda batch: {"sum": batch["value"].sum()}, batched=True)
    assert [batch["sum"] for batch in summed][:2] == [3, 12]


def test_a_function_that_takes_rng_is_random_by_seed_epoch_and_sample() -> None:
    flow = numbers().shuffle().map(shaken, field="value").batch(20)
    (first,), (again,), (second,) = flow.epoch(0), flow.epoch(0), flow.epoch(1)
    assert first["value"].tolist() == again["value"].tolist()
    by_sample = [dict(zip(one["index"].tolist(), one["value"].tolist(), strict=True)) for one in (first, second)]
    assert sum(by_sample[0][index] != by_sample[1][index] for index in range(20)) > 15
    assert len({value - index for index, value in by_sample[0].items()}) > 15
    assert_as_reference(flow, 3)


def test_two_equal_random_functions_draw_different_numbers() -> None:
    one = numbers().map(shaken, field="value").batch(20)
    two = numbers().map(shaken, field="value").map(shaken, field="value").batch(20)
    (single,), (double,) = one, two
    first = single["value"] - np.arange(20)
    assert not np.array_equal(double["value"] - single["value"], first)


def test_a_random_function_on_batches_follows_the_batch() -> None:
    def noisy(batch: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        return {**batch, "noise": rng.random()}

    flow = numbers().batch(4).map(noisy, batched=True)
    noises = [[batch["noise"] for batch in flow.epoch(epoch)] for epoch in (0, 1, 0)]
    assert noises[0] == noises[2] and len({*noises[0], *noises[1]}) == 10
    assert_as_reference(numbers().batch(4).map(_indexed_noise, batched=True), 2)


def _indexed_noise(batch: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    return {**batch, "noise": rng.random(len(batch["index"]))}


def test_functions_on_batches_see_empty_shares_of_a_mix_too() -> None:
    flow = ps.mix([numbers(9), numbers(9)], [1, 1]).take(9).batch(4).map(_indexed_noise, batched=True)
    shares = [list(flow.shard(rank, 4, keep_all=True)) for rank in range(4)]
    assert [[len(batch["noise"]) for batch in share] for share in shares] == [[1, 1, 0]] * 3 + [[1, 1, 1]]


def test_functions_on_batches_see_empty_shares_too() -> None:
    flow = numbers(9).batch(4).map(_indexed_noise, batched=True).shard(0, 3, keep_all=True)
    assert [len(batch["noise"]) for batch in flow] == [1, 1, 0]


def test_a_function_cannot_change_what_the_next_one_sees_of_the_source() -> None:
    class Kept(Numbers):
        def __init__(self, count: int) -> None:
            super().__init__(count)
            self.samples = [{"value": index} for index in range(count)]

        def decode(self, raw: ps.Raw) -> dict[str, Any]:
            return self.samples[raw.index]

    def spoiling(sample: dict[str, Any]) -> dict[str, Any]:
        sample["value"] = -1
        return sample

    flow = ps.Flow(Kept(4)).map(spoiling).batch(4)
    assert next(iter(flow))["value"].tolist() == [-1] * 4
    assert next(iter(ps.Flow(flow._plan.source).batch(4)))["value"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda sample: None, "gave NoneType. It gets a sample as a dict and must return one"),
        (lambda sample: {**sample, "value": 1 / 0}, "ZeroDivisionError"),
        (lambda sample: {} if sample["value"] == 2 else sample, "a sample without 'value'"),
        (lambda sample: {"value": np.zeros(sample["value"])}, "other samples"),
    ],
)
def test_a_function_that_fails_names_the_sample(function: Any, words: str) -> None:
    with pytest.raises(HopError, match=f"sample \\d.*{words}"):
        list(numbers().map(function).batch(4))


def test_a_function_on_batches_must_give_a_batch() -> None:
    with pytest.raises(RecipeError, match="of map\\(batched=True\\) gave ndarray and must return a dict"):
        list(numbers().batch(4).map(lambda batch: batch["value"], batched=True))


# Bad samples


def test_a_bad_sample_is_named() -> None:
    with pytest.raises(HopError, match="sample 7 \\(pictures/7.png\\): decode failed"):
        list(ps.Flow(Pictures(20, broken=(7,))).batch(4))


def test_a_bad_sample_is_replaced_and_listed_where_the_user_says_so() -> None:
    flow = ps.Flow(Pictures(20, broken=(7, 11)), seed=3, on_bad_sample="substitute").shuffle().batch(4)
    assert_as_reference(flow)
    assert sorted(bad.index for bad in flow.bad_samples) == [7, 11]
    assert [(bad.index, bad.substitute) for bad in flow.bad_samples] == reference.replaced(flow, 0)
    found = flat(flow.epoch(0))
    assert len(found) == 20 and not {7, 11} & set(found) and "no JPEG" in flow.bad_samples[0].reason


def test_too_many_bad_samples_are_an_error_that_lists_them() -> None:
    def flow(most: float) -> ps.Flow:
        source = Pictures(20, broken=(3, 7, 11))
        return ps.Flow(source, on_bad_sample="substitute", max_bad=most).batch(4)

    for most in (2, 0.1, 0):
        with pytest.raises(DataError, match="max_bad"):
            list(flow(most))
    for most in (3, 0.15):
        assert len(list(flow(most))) == 5


def test_the_count_of_bad_samples_survives_a_restore() -> None:
    source = Pictures(20, broken=(1, 11))
    flow = ps.Flow(source, on_bad_sample="substitute", max_bad=1).batch(4)
    next(flow.epoch())
    state = flow.state()
    other = ps.Flow(source, on_bad_sample="substitute", max_bad=1).batch(4)
    other.restore(state)
    with pytest.raises(DataError, match="max_bad=1"):
        list(other.epoch())


def test_where_everything_is_bad_an_error_says_so() -> None:
    flow = ps.Flow(Pictures(5, broken=tuple(range(5))), on_bad_sample="substitute").map(Resize((8, 8))).batch(5)
    with pytest.raises(HopError, match="and 100 substitutes for it failed too"):
        list(flow)


def test_where_everything_is_bad_a_plan_without_a_known_layout_says_so_too() -> None:
    flow = ps.Flow(Pictures(5, broken=tuple(range(5))), on_bad_sample="substitute").batch(5)
    with pytest.raises(HopError, match="and 100 substitutes for it failed too"):
        list(flow)


# Mixing


def test_a_mix_has_its_members_in_proportion_and_tells_which_is_which() -> None:
    flow = ps.mix([numbers(100).shuffle(), ps.Flow(Numbers(100), seed=1).shuffle()], [3, 1]).batch(8)
    batches = list(flow)
    assert all(np.bincount(batch["member"]).tolist() == [6, 2] for batch in batches[:-1])
    assert len(flat(batches)) == len(reference.order_of(flow, 0)) == 134  # the first has nothing for position 134
    assert "draw" not in batches[0]


def test_a_mix_until_all_sees_everything() -> None:
    flow = ps.mix([numbers(30), ps.Flow(Numbers(4), seed=1).shuffle()], [1, 1], until="all").batch(8)
    pairs = [(m, i) for b in flow for m, i in zip(b["member"].tolist(), b["index"].tolist(), strict=True)]
    assert {index for member, index in pairs if member == 0} == set(range(30))
    assert len([1 for member, _ in pairs if member == 1]) == len(pairs) // 2


def test_flows_of_different_fields_cannot_be_mixed() -> None:
    with pytest.raises((RecipeError, HopError), match="differ|other samples"):
        list(ps.mix([pictures(), numbers()]).batch(4))
    with pytest.raises(RecipeError, match="flow 1 is batched already. Mix samples, then call batch once"):
        ps.mix([numbers(), numbers().batch(4)])
    with pytest.raises(RecipeError, match="mix needs at least one flow"):
        ps.mix([])


# Mistakes in plans


MISTAKES = {
    "two batches": (lambda: numbers().batch(4).batch(2), "there is a batch already"),
    "two shards": (lambda: numbers().batch(4).shard(0, 2).shard(0, 2), "there is a shard already"),
    "an augmentation on batches": (lambda: pictures().batch(4).map(HorizontalFlip()), "move it before batch"),
    "a sample function on batches": (lambda: numbers().batch(4).map(doubled), "batched=True"),
    "a batched function on samples": (lambda: numbers().map(doubled, batched=True), "call batch\\(size\\) before it"),
    "shuffle after batch": (lambda: numbers().batch(4).shuffle(), "move it before batch"),
    "cache after batch": (lambda: numbers().batch(4).cache(), "move it before batch"),
    "shuffle after endless repeat": (lambda: numbers().repeat().shuffle(), "move it before repeat"),
    "a random cache": (lambda: list(numbers().map(shaken, field="value").cache().batch(4)), "before the first random"),
    "a random filter": (
        lambda: list(numbers().map(shaken, field="value").filter(bool).batch(4)),
        "before the first random",
    ),
    "where after shuffle": (lambda: list(pictures().shuffle().where(label=1).batch(4)), "Move it forward"),
    "clips late": (lambda: list(pictures().shuffle().clips().batch(4)), "clips must be the first step"),
    "no batch": (lambda: list(numbers()), "add .batch\\(size\\)"),
    "no batch, asked for its length": (lambda: len(numbers()), "add .batch\\(size\\)"),
    "a batch of nothing": (lambda: numbers().batch(0), "whole number from 1"),
    "a rank too high": (lambda: numbers().batch(4).shard(2, 2), "from 0 to 1"),
    "a batch below the ranks": (lambda: len(numbers().batch(2).shard(0, 4)), "too small for 4 ranks"),
    "half a worker": (lambda: numbers(workers=0.5), 'whole number or "auto"'),
    "fewer workers than none": (lambda: numbers(workers=-1), "0 or more"),
    "an executor that is none": (lambda: numbers(executor="gpu"), "auto, thread, subprocess, process"),
    "bad samples skipped": (lambda: numbers(on_bad_sample="skip"), "raise, substitute"),
    "a seed that is no number": (lambda: ps.Flow(Numbers(3), seed="7"), "whole number"),  # type: ignore[arg-type]
    "no function": (lambda: numbers().map("flip"), "map takes a function, not str"),
    "shapes that are none": (lambda: numbers().batch(4, shapes="wide"), "fixed, padded, ragged"),
    "a field for an augmentation": (lambda: pictures().map(HorizontalFlip(), field="image"), "leave field and batched"),
    "take of less than nothing": (lambda: numbers().take(-1), "whole number from 0"),
    "prefetch of nothing": (lambda: numbers().prefetch(0), "whole number from 1"),
    "clips without videos": (lambda: list(numbers().clips().batch(4)), "image field"),
    "a list as a source": (lambda: ps.Flow([1, 2, 3]), "penstock.open.*penstock.from_generator"),  # type: ignore[arg-type]
    "a class as an augmentation": (lambda: list(pictures().map(HorizontalFlip).batch(4)), "HorizontalFlip\\("),
    "a field that is not there": (lambda: list(numbers().map(abs, field="image").batch(4)), "a sample has value"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_plan_names_the_remedy(mistake: str) -> None:
    make, words = MISTAKES[mistake]
    with pytest.raises((RecipeError, HopError), match=words):
        make()


# Fused equals unfused


PLANS: dict[str, list[Any]] = {
    "crops": [RandomResizedCrop(24), HorizontalFlip()],
    "padding": [RandomCrop(16, padding=4), HorizontalFlip(), Normalize()],
    "larger": [Resize((40, 50)), CenterCrop(37)],
    "two crops": [CenterCrop(18), RandomCrop(12), HorizontalFlip()],
    "shrunk twice": [Resize((9, 9)), Resize((5, 6))],
}


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("stored", ["jpeg", "png", "raw", "webp"])
def test_what_is_fused_has_the_bits_of_one_step_after_the_other(stored: str, plan: str, tmp_path: Path) -> None:
    how = {"jpeg": {}, "raw": {"codec": "raw", "size": "30x27"}}.get(stored, {"codec": stored})
    pack = ps.pack(Photos(10), tmp_path / "a.pack", progress=False, **how)
    flow = ps.Flow(pack, seed=5, fast_decode=False).shuffle()
    for step in PLANS[plan]:
        flow = flow.map(step)
    flow = flow.batch(4)
    assert flow._running.program.leaves[0].fusion is not None
    for epoch in (0, 1):
        assert_as_reference(flow, epoch)
    assert_as_plain(flow)


def assert_as_plain(flow: ps.Flow) -> None:
    """Batches hold what `flow[i]` gives, which is made without any fusion."""
    position = 0
    for batch in list(flow.epoch(0)):
        flow.epoch(0)
        for row in range(len(batch["index"])):
            sample = flow[position]
            position += 1
            assert all(np.array_equal(np.asarray(sample[name]), batch[name][row]) for name in batch)


@pytest.mark.parametrize("codec", ["jpeg", "raw", "png"])
@pytest.mark.parametrize("label", ["first", "middle", "last", "all"])
def test_fused_clips_have_the_bits_of_frames_one_by_one(codec: str, label: Any, tmp_path: Path) -> None:
    pack = ps.pack(Reels(7, 4, 6), tmp_path / "a.pack", codec=codec, progress=False)
    for edge, step in (("repeat", 1), ("drop", 2)):
        flow = ps.Flow(pack, seed=5, fast_decode=False).clips(3, 2, label=label, edge=edge, step=step)
        flow = flow.shuffle().map(RandomResizedCrop(12)).map(HorizontalFlip()).batch(3)
        assert flow._running.program.leaves[0].fusion is not None
        assert_as_reference(flow)


class Boxed(Photos):
    """Photos with boxes and a label for each."""

    schema = ps.Schema(
        (ps.Field("image", "image"), ps.Field("boxes", "boxes"), ps.Field("box_label", "labels", "int64")),
        ("tree", "bush"),
    )

    def annotations(self, index: int) -> dict[str, Any]:
        rng = np.random.default_rng(index)
        corners = np.sort(rng.uniform(0, 19, (index % 4, 2, 2)), axis=1).reshape(-1, 4)
        return {
            "boxes": corners.astype(np.float32),
            "box_label": rng.integers(0, 2, index % 4),
            "key": f"{index}",
            "group": "all",
        }


@pytest.mark.parametrize("packed", [False, True])
def test_boxes_follow_fused_images(packed: bool, tmp_path: Path) -> None:
    source: Any = ps.pack(Boxed(12), tmp_path / "a.pack", progress=False) if packed else Boxed(12)
    flow = (
        ps.Flow(source, seed=5, fast_decode=False).map(RandomCrop(14)).map(HorizontalFlip()).batch(5, shapes="ragged")
    )
    assert flow._running.program.leaves[0].fusion is not None
    number = 0
    for batch in list(flow.epoch(0)):
        for row in range(len(batch["index"])):
            sample = reference._made(reference.part_of(flow._plan), reference.order_of(flow, 0)[number])
            number += 1
            for name in ("image", "boxes", "box_label"):
                assert reference.same(np.asarray(batch[name][row]), np.asarray(sample[name])), name


def test_masks_and_boxes_follow_images_of_a_pack_with_every_kind(tmp_path: Path) -> None:
    pack = ps.pack(EveryKind(12), tmp_path / "a.pack", progress=False)
    flow = ps.Flow(pack, seed=5).shuffle().map(RandomCrop(20)).map(HorizontalFlip()).batch(5, shapes="padded")
    assert_as_reference(flow)


def test_half_of_a_chain_is_fused_and_the_rest_goes_on(photos: ps.Pack) -> None:
    flow = ps.Flow(photos, seed=5, fast_decode=False).shuffle().map(RandomResizedCrop(16)).map(_brighter)
    flow = flow.map(HorizontalFlip()).map(Normalize()).batch(4)
    fusion = flow._running.program.leaves[0].fusion
    assert fusion is not None and fusion.links == 1
    assert_as_reference(flow)
    assert_as_plain(flow)


def _brighter(sample: dict[str, Any]) -> dict[str, Any]:
    return {**sample, "image": sample["image"] // 2 + 100}


def test_fast_decoding_stays_close_to_the_exact_one(photos: ps.Pack) -> None:
    exact, fast = (
        np.concatenate([batch["image"] for batch in ps.Flow(photos, fast_decode=fast).map(Resize((8, 8))).batch(8)])
        for fast in (False, True)
    )
    assert 0 < np.abs(exact.astype(int) - fast.astype(int)).max() < 60


def test_a_program_survives_being_forgotten_and_a_flow_being_dropped(photos: ps.Pack) -> None:
    batch = next(iter(ps.Flow(photos).map(Resize((8, 8))).batch(4)))
    gc.collect()
    assert batch["image"].shape == (4, 8, 8, 3)
    assert os.getpid() > 0
