"""The order of interleaved files, against a plain loop and against tf.data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from made_sources import Pictures
from penstock.errors import OptionError
from penstock.flow.order.selection import interleaved

FILES = st.lists(st.integers(0, 12), max_size=12)


def starts_of(lengths: list[int]) -> list[int]:
    """Files lie apart from one another, so that a wrong file shows."""
    return [100 * file for file in range(len(lengths))]


def ordered(lengths: list[int], cycle_length: int, block_length: int) -> list[int]:
    starts, sizes = np.array(starts_of(lengths), np.int64), np.array(lengths, np.int64)
    return interleaved(starts, sizes, cycle_length=cycle_length, block_length=block_length).tolist()


def walked(lengths: list[int], cycle_length: int, block_length: int) -> Iterator[int]:
    """A loop over places that are open: each gives a block, and one that is empty opens the next file."""
    waiting = [iter(range(start, start + size)) for start, size in zip(starts_of(lengths), lengths, strict=True)]
    places: list[Iterator[int] | None] = [None] * cycle_length
    while waiting or any(places):
        for place in range(cycle_length):
            if places[place] is None and waiting:
                places[place] = waiting.pop(0)
            for _ in range(block_length):
                file = places[place]
                sample = None if file is None else next(file, None)
                if sample is None:
                    places[place] = None
                    break
                yield sample


@given(lengths=FILES, cycle_length=st.integers(1, 6), block_length=st.integers(1, 5))
def test_files_are_interleaved_as_a_plain_loop_does(lengths: list[int], cycle_length: int, block_length: int) -> None:
    assert ordered(lengths, cycle_length, block_length) == list(walked(lengths, cycle_length, block_length))


def test_two_files_take_turns_and_the_third_takes_the_place_of_the_first_that_ends() -> None:
    assert ordered([2, 5, 3], 2, 1) == [0, 100, 1, 101, 102, 200, 103, 201, 104, 202]


def test_the_example_of_tf_data() -> None:
    files = [sample // 100 + 1 for sample in ordered([6] * 5, 2, 4)]
    assert files == [int(digit) for digit in "111122221122" + "333344443344" + "555555"]


def test_tf_data_agrees() -> None:
    tensorflow = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    for seed in range(30):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(0, 12, rng.integers(1, 12)).tolist()
        cycle_length, block_length = int(rng.integers(1, 6)), int(rng.integers(1, 5))
        files = tensorflow.data.Dataset.from_tensor_slices((starts_of(lengths), lengths))
        theirs = files.interleave(
            lambda start, size: tensorflow.data.Dataset.range(
                tensorflow.cast(start, "int64"), tensorflow.cast(start + size, "int64")
            ),
            cycle_length=cycle_length,
            block_length=block_length,
        )
        assert ordered(lengths, cycle_length, block_length) == [int(sample) for sample in theirs]


def test_a_million_samples_come_once_each() -> None:
    lengths = np.random.default_rng(3).integers(0, 2_000, 1_000)
    order = interleaved(np.cumsum(lengths) - lengths, lengths, cycle_length=16, block_length=4)
    assert np.array_equal(np.sort(order), np.arange(lengths.sum()))


@pytest.mark.parametrize("wrong", ["cycle_length", "block_length"])
def test_what_cannot_be_interleaved_is_said(wrong: str) -> None:
    options = {"cycle_length": 1, "block_length": 1, wrong: 0}
    with pytest.raises(OptionError, match=f"{wrong}=0"):
        interleaved(np.array([0]), np.array([3]), **options)


# In a flow


def order_of(source: ps.Source, **options: Any) -> list[int]:
    return [
        int(index)
        for batch in ps.Flow(source, workers=0).interleave(2, **options).batch(64)
        for index in batch["index"]
    ]


def test_shards_of_a_pack_without_groups_take_turns(tmp_path: Path) -> None:
    ps.pack(Pictures(12), tmp_path / "p.pack", shard_mb=1, codec="raw", size="400x400")
    pack = ps.Pack(tmp_path / "p.pack")
    shards = pack.shard_numbers(np.arange(12))
    assert len(set(shards.tolist())) > 1, "the example needs several shards"
    first = int(np.flatnonzero(shards != shards[0])[0])
    assert order_of(pack)[:2] == [0, first] == order_of(pack, by="shard")[:2]


def test_files_of_records_take_turns(tmp_path: Path) -> None:
    ps.export(Pictures(12), tmp_path / "records", to="tfrecord", shard_samples=4)
    source = ps.open(tmp_path / "records")
    files = source.column("file")
    first = int(np.flatnonzero(files != files[0])[0])
    assert order_of(source)[:2] == [0, first]


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        (Pictures(12), {}, "12 samples have a group each"),
        (Pictures(12, group_size=12), {}, "12 samples have one group"),
        (Pictures(12), {"by": "key"}, "a key each"),
        (Pictures(12), {"by": "shard"}, "Pictures has no shards"),
    ],
)
def test_interleaving_that_would_change_nothing_is_an_error(source: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        order_of(source, **options)


def test_groups_take_turns_by_themselves() -> None:
    assert order_of(Pictures(6, group_size=3)) == [0, 3, 1, 4, 2, 5]
