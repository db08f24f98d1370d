"""A flow as a keras.utils.PyDataset whose batches come in the flow's order, whatever order Keras asks in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import OptionError, nearest
from penstock.flow.adapters.epochs import Passes, framework
from penstock.flow.making.layout import Ragged

if TYPE_CHECKING:
    from penstock.flow.flow import Batch, Flow

Names = str | Sequence[str] | Mapping[str, str]  # one field, several in order, or fields by their name in the model


def keras_dataset(flow: Flow, x: Names, y: Names | None, weight: Names | None) -> Any:
    """The dataset; its class is made here because its parent is Keras'."""
    keras = framework("keras", "to_keras")
    if weight is not None and y is None:
        raise OptionError(f"weight={weight!r} weighs targets, and y=None says that there are none.")
    passes = Passes(flow)

    class FlowDataset(keras.utils.PyDataset):  # type: ignore[misc, name-defined]
        """Batches of a flow: (x,), (x, y) or (x, y, weight)."""

        # Batches are made by the workers of the flow. Workers of Keras would only bring them out of order.
        workers = property(lambda self: 1, lambda self, value: None)
        use_multiprocessing = property(lambda self: False, lambda self, value: None)

        def __len__(self) -> int:
            return passes.count()

        @property
        def num_batches(self) -> int | None:
            passes.may_begin()
            return passes.known_count()

        def __getitem__(self, index: int) -> tuple[Any, ...]:
            return _inputs(passes.batch(index), x, y, weight, tuple)

        def on_epoch_begin(self) -> None:
            passes.epoch_begins()

        def on_epoch_end(self) -> None:
            passes.epoch_ends()

        def set_epoch(self, epoch: int) -> None:
            """The next epoch that begins has this number."""
            passes.set_epoch(epoch)

        def __iter__(self) -> Iterator[tuple[Any, ...]]:
            return self

        def __next__(self) -> tuple[Any, ...]:
            """The next batch, epoch after epoch without end: what code with generators asks for."""
            return _inputs(passes.following(), x, y, weight, list)

    return FlowDataset()


def _inputs(batch: Batch, x: Names, y: Names | None, weight: Names | None, several: Any) -> tuple[Any, ...]:
    """What Keras takes apart again; `several` inputs are a tuple for datasets and a list for generators."""
    taken = (x,) if y is None else (x, y) if weight is None else (x, y, weight)
    return tuple(_part(batch, names, several) for names in taken)


def _part(batch: Batch, names: Names, several: Any) -> Any:
    if isinstance(names, str):
        return _array(batch, names)
    if isinstance(names, Mapping):  # Keras finds inputs and targets by these names, whatever their order
        return {name: _array(batch, field) for name, field in names.items()}
    return several(_array(batch, name) for name in names)


def _array(batch: Batch, name: str) -> np.ndarray[Any, Any]:
    if name not in batch:
        raise OptionError(
            f"to_keras: batches have no field {name!r}; they have {', '.join(batch)}.{nearest(name, tuple(batch))}"
        )
    value = batch[name]
    if isinstance(value, Ragged):
        raise OptionError(
            f"to_keras: {name!r} differs in size from sample to sample, and Keras takes one array. Use batch(…, "
            'shapes="padded"), or a map that makes the sizes equal.'
        )
    return np.asarray(value)
