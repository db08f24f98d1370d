"""Small Keras networks that write down which samples they were given; run with the KERAS_BACKEND of the environment.

python -m tests.flow.adapters.keras_runs NAME … prints what each of these functions returns, as JSON.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

import keras
import numpy as np
from tests.flow.small_flows import numbers, pictures

import penstock as ps

SAMPLES, BATCH = 11, 2  # six batches, the last one short


def _has_values(tensor: Any) -> bool:
    """Whether a tensor is one of a batch: not symbolic, not traced, not on torch's device without memory."""
    is_symbolic = isinstance(tensor, keras.KerasTensor) or "Tracer" in type(tensor).__name__
    return not is_symbolic and getattr(getattr(tensor, "device", None), "type", "") != "meta"


class Noting(keras.layers.Layer):
    """Writes down the samples of each batch; symbolic tensors have none."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[list[int]] = []

    def call(self, index: Any, value: Any) -> Any:
        if _has_values(index):
            self.seen.append(np.asarray(keras.ops.convert_to_numpy(index)).astype(int).tolist())
        return keras.ops.expand_dims(keras.ops.cast(value, "float32"), -1)


class Network(keras.Model):
    """Two inputs, one number out."""

    def __init__(self) -> None:
        super().__init__()
        self.noting, self.dense = Noting(), keras.layers.Dense(1)

    def call(self, inputs: Any) -> Any:
        index, value = inputs
        return self.dense(self.noting(index, value))


def network() -> Network:
    model = Network()
    model.compile(optimizer="sgd", loss="mse", run_eagerly=True)
    model((np.zeros(1, np.int64), np.zeros(1, np.int64)))  # some backends call layers once more to build them
    model.noting.seen.clear()
    return model


def flow(**options: Any) -> ps.Flow:
    return numbers(SAMPLES, **options).shuffle().batch(BATCH)


def dataset(**options: Any) -> Any:
    return flow(**options).to_keras(x=("index", "value"), y="value")


def fitted(epochs: int = 3, data: Any = None, **options: Any) -> list[list[int]]:
    """The batches that `fit` gave to the network, with Keras' own permutation on."""
    model = network()
    random.seed(5)
    model.fit(dataset() if data is None else data, epochs=epochs, verbose=0, **options)
    return model.noting.seen


class TwoTargets(keras.utils.PyDataset):
    """Two targets that differ, in another order than the outputs of the network."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Any:
        zeros = np.zeros((4, 1), np.float32)
        return {"b": zeros, "a": zeros + 1}, {"v": zeros + 5, "u": zeros}


def named_targets() -> dict[str, dict[str, float]]:
    """The losses of a network that answers 0 for both of its outputs."""
    a, b = keras.Input((1,), name="a"), keras.Input((1,), name="b")
    outputs = {name: keras.layers.Dense(1, kernel_initializer="zeros", name=name)(a - 0 * b) for name in ("u", "v")}
    model = keras.Model({"a": a, "b": b}, outputs)
    model.compile(loss={"u": "mse", "v": "mse"})
    named = ps.Flow(ps.from_sequence(TwoTargets())).to_keras(x={"b": "b", "a": "a"}, y={"v": "v", "u": "u"})
    generated = ps.Flow(ps.from_sequence(TwoTargets())).to_keras(x={"b": "b", "a": "a"}, y={"v": "v", "u": "u"})
    ordered = keras.Model([a, b], list(outputs.values()))
    ordered.compile(loss=["mse", "mse"])
    in_order = ps.Flow(ps.from_sequence(TwoTargets())).to_keras(x=["a", "b"], y=["u", "v"])
    return {
        "dict": _losses(model.evaluate(named, verbose=0, return_dict=True)),
        "generator": _losses(model.evaluate((batch for batch in generated), steps=2, verbose=0, return_dict=True)),
        "list": _losses(ordered.evaluate(in_order, verbose=0, return_dict=True)),
        "keras": _losses(model.evaluate(TwoTargets(), verbose=0, return_dict=True)),
    }


def _losses(found: dict[str, float]) -> dict[str, float]:
    return {name: float(found[name]) for name in ("u_loss", "v_loss")}


def plain_fit() -> list[list[int]]:
    return fitted()


def fit_with_workers() -> list[list[int]]:
    data = dataset()
    data.workers, data.use_multiprocessing, data.max_queue_size = 4, True, 3
    return fitted(data=data)


def fit_in_steps() -> list[list[int]]:
    """Keras' epochs of two steps, which go on through the flow's epochs of six."""
    return fitted(epochs=6, steps_per_epoch=2)


def fit_twice() -> list[list[int]]:
    data, model = dataset(), network()
    for _ in range(2):
        model.fit(data, epochs=1, verbose=0)
    return model.noting.seen


def fit_with_validation() -> list[list[int]]:
    model = network()
    validation = numbers(3).batch(BATCH).to_keras(x=("index", "value"), y="value")
    model.fit(dataset(), epochs=2, verbose=0, validation_data=validation)
    return model.noting.seen


def evaluated_and_predicted() -> list[Any]:
    model = network()
    model.evaluate(dataset(), verbose=0)
    model.noting.seen.append([])
    answers = model.predict(flow().to_keras(x=("index", "value"), y=None), verbose=0)
    return [*model.noting.seen, list(np.shape(answers))]


def from_next() -> list[list[int]]:
    """A generator's consumer: two epochs in steps."""
    data = dataset()
    return [next(data)[0][0].tolist() for _ in range(12)]


def an_image_network_learns() -> list[float]:
    """Losses of a small network on pictures of two classes, which it can only learn with the right labels."""
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [keras.layers.Rescaling(1 / 255), keras.layers.Flatten(), keras.layers.Dense(3, activation="softmax")]
    )
    model.compile(optimizer=keras.optimizers.Adam(0.003), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    history = model.fit(pictures(30).shuffle().batch(8).to_keras(), epochs=25, verbose=0)
    return [history.history["loss"][0], history.history["loss"][-1], history.history["accuracy"][-1]]


if __name__ == "__main__":
    answers = {name: globals()[name]() for name in sys.argv[1:]}
    print(json.dumps({"backend": keras.config.backend(), **answers}))
