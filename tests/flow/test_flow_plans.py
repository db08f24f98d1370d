"""Which samples a plan has and how many; mixes; mistakes that name their remedy."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
from tests.flow import reference
from tests.flow.small_flows import doubled, flat, indices, numbers, pictures, shaken

import penstock as ps
from made_sources import Numbers, Pictures
from penstock.augment import HorizontalFlip, RandomCrop, Resize
from penstock.errors import HopError, OptionError

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
    with pytest.raises(OptionError, match="this flow has no end"):
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
        with pytest.raises(OptionError, match="a flow without end has one epoch, number 0"):
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
    with pytest.raises(OptionError, match=words):
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
    with pytest.raises((OptionError, HopError), match="differ|other samples"):
        list(ps.mix([pictures(), numbers()]).batch(4))
    with pytest.raises(OptionError, match="flow 1 is batched already. Mix samples, then call batch once"):
        ps.mix([numbers(), numbers().batch(4)])
    with pytest.raises(OptionError, match="mix needs at least one flow"):
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
    "a list as a source": (lambda: ps.Flow([1, 2, 3]), "penstock.from_sequence"),  # type: ignore[arg-type]
    "a class as an augmentation": (lambda: list(pictures().map(HorizontalFlip).batch(4)), "HorizontalFlip\\("),
    "a field that is not there": (lambda: list(numbers().map(abs, field="image").batch(4)), "a sample has value"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_plan_names_the_remedy(mistake: str) -> None:
    make, words = MISTAKES[mistake]
    with pytest.raises((OptionError, HopError), match=words):
        make()
