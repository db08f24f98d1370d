"""Flows as TensorFlow takes them, with the real one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.flow.small_flows import indices, numbers, pictures

import penstock as ps
from made_sources import EveryKind

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed; make test-peers has it")
pytestmark = pytest.mark.filterwarnings("ignore")  # of TensorFlow's own


def flow() -> ps.Flow:
    return numbers(11).shuffle().batch(2)


def test_each_iteration_is_the_next_epoch() -> None:
    dataset = flow().to_tf()
    for epoch in range(3):
        found = [batch["index"].numpy().tolist() for batch in dataset]
        assert found == indices(flow().epoch(epoch))


def test_repeat_goes_through_the_epochs() -> None:
    found = [batch["index"].numpy().tolist() for batch in flow().to_tf().repeat(2)]
    assert found == [*indices(flow().epoch(0)), *indices(flow().epoch(1))]


def test_a_restored_flow_goes_on() -> None:
    first = flow()
    next(batches := first.epoch(1))
    restored = flow()
    restored.restore(first.state())
    batches.close()
    assert next(iter(restored.to_tf()))["index"].numpy().tolist() == indices(flow().epoch(1))[1]


def test_the_spec_has_the_sizes_that_all_batches_share() -> None:
    spec = pictures(8).batch(4).to_tf().element_spec
    assert spec["image"] == tf.TensorSpec((4, 24, 32, 3), tf.uint8)
    assert spec["label"] == spec["index"] == tf.TensorSpec((4,), tf.int64)
    assert pictures(9).batch(4).to_tf().element_spec["image"].shape.as_list() == [None, 24, 32, 3]
    assert pictures(9).batch(4, drop_last=True).to_tf().element_spec["image"].shape.as_list() == [4, 24, 32, 3]


def test_the_cardinality_is_that_of_the_flow() -> None:
    def count() -> Any:
        yield from ({"value": number} for number in range(3))

    assert flow().to_tf().cardinality() == 6
    endless = numbers(3).repeat().batch(2).to_tf()
    assert endless.cardinality() == tf.data.INFINITE_CARDINALITY
    assert [batch["index"].numpy().tolist() for batch in endless.take(3)] == [[0, 1], [2, 0], [1, 2]]
    stream = ps.Flow(ps.from_generator(count)).batch(2).to_tf()
    assert stream.cardinality() == tf.data.UNKNOWN_CARDINALITY
    for _ in range(2):
        assert [batch["value"].numpy().tolist() for batch in stream] == [[0, 1], [2]]


@pytest.mark.parametrize("shapes", ["ragged", "padded"])
def test_fields_of_every_kind_arrive(shapes: Any) -> None:
    plan = ps.Flow(EveryKind(6), executor="thread").map(only_lengths).batch(4, shapes=shapes)
    for tensors, batch in zip(plan.to_tf(), plan.epoch(0), strict=True):
        assert tensors.keys() == batch.keys()
        assert [text.decode() for text in tensors["caption"].numpy()] == batch["caption"]
        boxes = tensors["boxes"]
        if shapes == "ragged":
            assert isinstance(boxes, tf.RaggedTensor)
            for found, expected in zip(boxes, batch["boxes"], strict=True):
                assert np.array_equal(found.numpy(), expected)
        else:
            assert np.array_equal(boxes.numpy(), batch["boxes"])
        assert np.array_equal(tensors["vector"].numpy(), np.stack(list(batch["vector"])))


def only_lengths(sample: dict[str, Any]) -> dict[str, Any]:
    """Without the fields that differ in more than their length."""
    return {name: value for name, value in sample.items() if name not in ("image", "mask")}


def test_images_of_different_sizes_have_a_remedy() -> None:
    with pytest.raises(ps.OptionError, match='shapes="padded"'):
        ps.Flow(EveryKind(6), executor="thread").batch(4, shapes="ragged").to_tf()


def test_a_keras_network_learns_from_the_dataset() -> None:
    import keras

    if keras.config.backend() != "tensorflow":
        pytest.skip("Keras runs on another backend in this process")
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.layers.Rescaling(1 / 255), keras.layers.Flatten(), keras.layers.Dense(3)])
    model.compile(keras.optimizers.Adam(0.003), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    pairs = pictures(30).shuffle().batch(8).to_tf().map(lambda batch: (batch["image"], batch["label"]))
    losses = model.fit(pairs, epochs=25, verbose=0).history["loss"]
    assert losses[-1] < losses[0] / 10
