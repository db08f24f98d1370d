"""A flow as a tf.data.Dataset: dicts of tensors, with the element spec and the cardinality that the flow has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import DataError, OptionError, Problem
from penstock.flow.adapters.epochs import Epochs, framework
from penstock.flow.making.layout import Ragged
from penstock.flow.streams.stream_running import UnknownLength

if TYPE_CHECKING:
    from penstock.flow.flow import Flow


def tf_dataset(flow: Flow) -> Any:
    """The dataset; it is made after one look at the first batch, which is then made again."""
    tf = framework("tensorflow", "to_tf")
    epochs = Epochs(flow)
    first = epochs.first()
    if first is None:
        raise DataError([Problem("flow", None, "an epoch has no batch, so nobody knows its fields", "Add samples")])
    signature = {name: _spec(name, value, epochs, tf) for name, value in first.items()}
    del first

    def batches() -> Iterator[dict[str, Any]]:
        for batch, reached in epochs.begin():
            epochs.delivered(reached)
            yield {name: _value(name, value, tf) for name, value in batch.items()}
            del batch

    dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)
    count = _cardinality(epochs, tf)
    return dataset if count is None else dataset.apply(tf.data.experimental.assert_cardinality(count))


def _cardinality(epochs: Epochs, tf: Any) -> int | None:
    """How many batches the dataset has; None where nobody knows, which is what TensorFlow assumes."""
    if epochs.is_endless:
        return int(tf.data.INFINITE_CARDINALITY)
    try:
        return epochs.count()
    except UnknownLength:
        return None


def _spec(name: str, value: Any, epochs: Epochs, tf: Any) -> Any:
    """What all batches have in common."""
    if isinstance(value, Ragged):
        values = _ragged_values(name, value)
        rows = epochs.shape(name, (len(value),))
        return tf.RaggedTensorSpec((*rows, None, *values.shape[1:]), values.dtype, 1, tf.int64)
    array = np.asarray(value)
    if array.dtype.kind in "biufc":
        return tf.TensorSpec(epochs.shape(name, array.shape), array.dtype)
    return tf.TensorSpec(epochs.shape(name, array.shape[:1]), tf.string)


def _value(name: str, value: Any, tf: Any) -> Any:
    if isinstance(value, Ragged):
        return tf.RaggedTensor.from_row_splits(_ragged_values(name, value), value.offsets)
    return value


def _ragged_values(name: str, value: Ragged) -> Any:
    try:
        return value.values
    except OptionError as error:
        raise OptionError(
            f'{name!r}: {error} tf.data takes arrays that differ in their length alone: use batch(…, shapes="padded").'
        ) from error
