"""What a dataset for Keras answers, asked directly."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from tests.flow.small_flows import indices, numbers

import penstock as ps
from made_sources import EveryKind
from penstock.errors import OptionError
from penstock.flow.adapters.epochs import Passes

os.environ.setdefault("KERAS_BACKEND", "torch")  # read when Keras is imported, by to_keras


def epoch(number: int) -> list[list[int]]:
    return indices(numbers(11).shuffle().batch(2).epoch(number))


def dataset(**options: Any) -> Any:
    return numbers(11).shuffle().batch(2).to_keras(x="index", y=None, **options)


def rows(data: Any, order: Any) -> list[list[int]]:
    return [data[number][0].tolist() for number in order]


def test_outside_of_keras_a_number_is_what_it_says() -> None:
    data = dataset()
    assert len(data) == 6
    assert rows(data, [4, 4, 0, -1]) == [epoch(0)[number] for number in (4, 4, 0, 5)]
    with pytest.raises(IndexError):
        data[6]
    data.set_epoch(3)
    assert rows(data, range(6)) == epoch(3)


def test_a_pass_gives_batches_in_order_and_is_an_epoch_when_complete() -> None:
    data = dataset()
    for number in range(2):
        data.on_epoch_begin()
        assert data.num_batches == 6
        assert rows(data, [3, 5, 0, 2, 1, 4]) == epoch(number)
        data.on_epoch_end()


def test_looks_at_the_first_batches_and_passes_left_early_cost_nothing() -> None:
    data = dataset()
    assert data.num_batches == 6
    assert rows(data, [0, 1]) == epoch(0)[:2]  # a look, as for an element spec
    data.on_epoch_begin()
    assert data.num_batches == 6
    assert rows(data, [5, 3]) == epoch(0)[:2]  # left early
    data.on_epoch_end()
    data.on_epoch_begin()
    assert data.num_batches == 6
    assert rows(data, [2, 4, 0]) == epoch(0)[:3]
    assert (data.num_batches, len(data)) == (6, 6)  # a callback that asks does not begin anything
    data.on_epoch_end()
    data.on_epoch_begin()  # an epoch of Keras that goes on through the same pass
    assert rows(data, [5, 3, 1]) == epoch(0)[3:]
    data.on_epoch_end()
    assert rows(data, [0]) == epoch(1)[:1]


def test_a_look_at_all_batches_is_no_epoch() -> None:
    data = numbers(4).shuffle().batch(2).to_keras(x="index", y=None)
    expected = indices(numbers(4).shuffle().batch(2).epoch(0))
    assert data.num_batches == 2
    assert rows(data, [0, 1]) == expected  # TensorFlow looks at the first two, and resets
    data.on_epoch_end()
    data.on_epoch_begin()
    assert data.num_batches == 2
    assert rows(data, [1, 0]) == expected


def test_several_inputs_are_a_tuple_by_number_and_a_list_from_the_generator() -> None:
    data = numbers(4).batch(2).to_keras(x=["index", "value"], y="value", weight="index")
    inputs, targets, weights = data[1]
    assert isinstance(inputs, tuple) and [len(one) for one in inputs] == [2, 2]
    assert targets is not None and weights.tolist() == [2, 3]
    inputs, targets, weights = next(iter(data))
    assert isinstance(inputs, list) and inputs[0].tolist() == weights.tolist() == [0, 1]


def test_a_flow_without_end_is_asked_in_order() -> None:
    data = numbers(3).repeat().batch(2).to_keras(x="index", y=None)
    assert data.num_batches is None
    assert rows(data, range(4)) == [[0, 1], [2, 0], [1, 2], [0, 1]]
    assert rows(data, [0]) == [[0, 1]]
    assert next(data)[0].tolist() == [0, 1]


def test_a_stream_goes_round_and_has_no_numbers() -> None:
    def count() -> Any:
        yield from ({"value": number} for number in range(3))

    data = ps.Flow(ps.from_generator(count)).batch(2).to_keras(x="value", y=None)
    assert data.num_batches is None
    assert rows(data, range(4)) == [[0, 1], [2], [0, 1], [2]]
    assert rows(data, range(2)) == [[0, 1], [2]]
    assert [next(data)[0].tolist() for _ in range(3)] == [[0, 1], [2], [0, 1]]
    with pytest.raises(OptionError, match="out of turn"):
        data[7]


def test_texts_are_arrays_and_ragged_fields_are_refused_with_a_remedy() -> None:
    flow = ps.Flow(EveryKind(4), executor="thread").batch(2, shapes="ragged")
    assert flow.to_keras(x="caption", y="label")[0][0].tolist() == ["número 0", "número 1"]
    with pytest.raises(OptionError, match='shapes="padded"'):
        flow.to_keras(x="boxes")[0]


def test_mistakes_name_the_field_that_was_probably_meant() -> None:
    with pytest.raises(OptionError, match="Did you mean 'value'"):
        numbers(4).batch(2).to_keras(x="valeu")[0]
    with pytest.raises(OptionError, match="weighs targets"):
        numbers(4).batch(2).to_keras(x="value", y=None, weight="value")
    with pytest.raises(OptionError, match="expected a whole number"):
        numbers(4).batch(2).to_keras(x="value", y=None).set_epoch("2")


def test_ranks_get_their_shares() -> None:
    shares = [Passes(numbers(11).shuffle().batch(4).shard(rank, 2)) for rank in range(2)]
    seen = np.concatenate([share.batch(number)["index"] for share in shares for number in (2, 0, 1)])
    assert sorted(seen.tolist()) == list(range(11))
