"""A flow as JAX takes it: dicts of arrays that are on their way to the devices before they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import OptionError
from penstock.flow.adapters.epochs import Epochs, framework, started_ahead
from penstock.flow.making.layout import Ragged
from penstock.flow.state import Reached

if TYPE_CHECKING:
    from penstock.flow.flow import Batch, Flow

AHEAD = 1  # one batch is copied while another is used
LARGEST_32_BITS = 2**31 - 1


def jax_batches(flow: Flow, sharding: Any) -> JaxBatches:
    """The batches of a flow on devices; with a state, where the flow has one."""
    jax = framework("jax", "to_jax")
    epochs = Epochs(flow)
    return (ResumableJaxBatches if epochs.can_resume else JaxBatches)(epochs, jax, sharding)


class JaxBatches:
    """Each iteration is an epoch of dicts of device arrays; texts stay lists, ragged fields are lists of arrays.

    After the last batch the next epoch is due; one that is left early is not gone back to.
    """

    def __init__(self, epochs: Epochs, jax: Any, sharding: Any) -> None:
        self._epochs, self._jax, self._sharding = epochs, jax, sharding

    def __len__(self) -> int:
        return self._epochs.count()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch, reached in started_ahead(self._epochs.begin(), self._started, AHEAD):
            self._epochs.delivered(reached)
            yield batch
            del batch  # else this frame keeps the memory while the user has dropped the batch

    def set_epoch(self, epoch: int) -> None:
        """The next epoch that begins has this number, unless a state inside of it was just loaded."""
        self._epochs.set_epoch(epoch)

    def _started(self, item: tuple[Batch, Reached]) -> tuple[dict[str, Any], Reached]:
        return {name: self._put(name, value) for name, value in item[0].items()}, item[1]

    def _put(self, name: str, value: Any) -> Any:
        if isinstance(value, Ragged):  # pieces of different sizes cannot be spread as batches are
            return [self._jax.device_put(self._checked(name, piece)) for piece in value]
        if not isinstance(value, np.ndarray):
            return value
        if value.dtype.kind not in "biufc":
            return value.tolist()
        value = self._checked(name, value)
        if self._sharding is None or self._sharding.is_fully_addressable:
            return self._jax.device_put(value, self._sharding)
        return self._jax.make_array_from_process_local_data(self._sharding, value)

    def _checked(self, name: str, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """JAX cuts 64-bit numbers to 32 unless it is told not to; what would change is refused."""
        if value.dtype.kind not in "iu" or value.dtype.itemsize < 8 or self._jax.config.jax_enable_x64:
            return value
        if value.size and (value.max() > LARGEST_32_BITS or value.min() < -LARGEST_32_BITS):
            raise OptionError(
                f"{name!r} has numbers that need 64 bits, and JAX would cut them to 32. Call "
                'jax.config.update("jax_enable_x64", True) first.'
            )
        return value.astype(np.int32 if value.dtype.kind == "i" else np.uint32)


class ResumableJaxBatches(JaxBatches):
    """Batches whose state can be saved between any two."""

    def state_dict(self) -> dict[str, Any]:
        """What was delivered so far, as a few numbers; what is on its way to the devices does not count."""
        return self._epochs.state()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next iteration goes on with exactly the next batch."""
        self._epochs.restore(state)
