"""What is in a batch: fields, shapes, functions of the user, and substitutes for bad samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.flow import reference
from tests.flow.promised import Photos
from tests.flow.small_flows import assert_as_reference, doubled, flat, numbers, pictures, shaken

import penstock as ps
from made_sources import EveryKind, Numbers, Pictures
from penstock.augment import CenterCrop, Grey, Normalize, RandomCrop, Resize
from penstock.errors import DataError, HopError, OptionError


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> ps.Pack:
    folder = tmp_path_factory.mktemp("photos")
    return ps.pack(Photos(30), folder / "photos.pack", split="train=0.8,val=0.2", progress=False)


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
        with pytest.raises(OptionError, match="'image' is uint8, which cannot hold"):
            list(ps.Flow(EveryKind(9)).batch(4, shapes="padded", fill=fill))


def test_texts_come_as_a_list() -> None:
    batch = next(iter(ps.Flow(EveryKind(9)).batch(3, shapes="ragged")))
    assert batch["caption"] == ["número 0", "número 1", "número 2"]


def test_a_batch_has_no_key_but_a_sample_has() -> None:
    flow = pictures().batch(4)
    assert set(next(iter(flow))) == {"image", "label", "index"}
    assert {"key", "group"} <= set(flow[0])


@pytest.mark.parametrize(
    "odd",
    [
        np.float32([7]),  # could be repeated to fill the row
        np.float32([[7, 7, 7]]),
        np.float32(7),
        np.array([1e300, 0, 0]),  # infinite as float32
        np.complex64([7, 7, 7]),
    ],
    ids=["one number", "another dimension", "no dimension", "too large", "complex"],
)
def test_a_value_that_is_unlike_the_others_is_refused_and_never_repeated_or_changed(odd: Any) -> None:
    samples = [{"x": np.float32([1, 2, 3])}, {"x": np.float32([4, 5, 6])}, {"x": odd}]
    with pytest.raises(ps.PenstockError, match="'x' is .* here and 3 float32 in other samples"):
        list(ps.Flow(ps.from_sequence(samples, items="samples"), workers=0).batch(3))


def test_one_whole_number_that_does_not_fit_is_enough_to_be_refused() -> None:
    samples = [{"x": np.int32([1, 2, 3])}, {"x": np.int64([4, 5, 6])}, {"x": np.int64([7, 2**31, 9])}]
    with pytest.raises(ps.PenstockError, match="'x' is 3 int64 here and 3 int32 in other samples"):
        list(ps.Flow(ps.from_sequence(samples, items="samples"), workers=0).batch(3))


def test_values_of_another_type_that_keep_their_number_are_batched() -> None:
    samples = [{"x": np.float32([1, 2])}, {"x": np.array([3.0, 4.0])}, {"x": np.int16([5, 6])}]
    (batch,) = ps.Flow(ps.from_sequence(samples, items="samples"), workers=0).batch(3)
    assert batch["x"].dtype == np.float32 and batch["x"].tolist() == [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize("shapes", ["fixed"])
def test_fields_of_another_size_need_a_word(shapes: Any) -> None:
    with pytest.raises(OptionError, match='shapes="ragged".*shapes="padded"'):
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
    assert next(iter(ps.Flow(flow.plan.source).batch(4)))["value"].tolist() == [0, 1, 2, 3]


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


@pytest.mark.parametrize(
    ("first", "other", "words"),
    [
        (np.int8(1), np.int64(1000), "one int64 here and one int8 in other samples"),
        (np.float32(1), np.float64(1e300), "one float64 here and one float32"),
        (np.uint8(1), np.int64(-1), "one int64 here and one uint8"),
        (1, 1.5, "one float64 here and one int64"),
        ([1, 2], [3, [4]], "'value' cannot become an array"),
        (1, None, "one object here"),
    ],
)
def test_a_number_never_turns_into_another_one(first: Any, other: Any, words: str) -> None:
    flow = numbers(3).map(lambda sample: {"value": other if sample["value"] == 1 else first}).batch(3)
    with pytest.raises(HopError, match=f"sample 1: collate failed: .*{words}"):
        list(flow)


def test_numbers_of_other_types_that_fit_are_taken() -> None:
    values = [np.int16(5), 7, np.int64(-3)]
    (batch,) = numbers(3).map(lambda sample: {"value": values[sample["value"]]}).batch(3)
    assert batch["value"].tolist() == [5, 7, -3] and batch["value"].dtype == np.int16


def test_a_function_on_batches_must_give_a_batch() -> None:
    with pytest.raises(OptionError, match="of map\\(batched=True\\) gave ndarray and must return a dict"):
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
    with pytest.raises(HopError, match="so did all samples that were tried after it"):
        list(flow)
