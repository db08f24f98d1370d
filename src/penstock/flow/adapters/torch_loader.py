"""A flow as torch and Lightning take it: an iterable of dicts of tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penstock.errors import require
from penstock.flow.adapters.ahead import started_ahead
from penstock.flow.adapters.epochs import Epochs
from penstock.flow.adapters.torch_copies import Copy, closed_after, mover_to
from penstock.flow.state import Reached

if TYPE_CHECKING:
    from penstock.flow.flow import Batch, Flow

Tensors = dict[str, Any]


def torch_loader(flow: Flow, device: Any, pin_memory: bool | str) -> TorchLoader:
    """The loader of a flow; one that can be resumed, where the flow can."""
    torch = require("torch", "train", "to_torch")
    epochs = Epochs(flow)
    kind = ResumableTorchLoader if epochs.can_resume else TorchLoader
    return kind(epochs, torch, device, pin_memory)


class EpochSampler:
    """Where Lightning says which epoch begins; it looks for `sampler.set_epoch`."""

    def __init__(self, epochs: Epochs) -> None:
        self._epochs = epochs

    def set_epoch(self, epoch: int) -> None:
        """The next epoch that begins has this number."""
        self._epochs.set_epoch(epoch)


class TorchLoader:
    """Each iteration is an epoch: dicts of tensors that share the memory of the flow's batches on the CPU.

    After the last batch the next epoch is due; one that is left early is not gone back to.
    """

    batch_sampler = None  # Lightning asks for it where there is a sampler

    def __init__(self, epochs: Epochs, torch: Any, device: Any, pin_memory: bool | str) -> None:
        self._epochs, self._torch = epochs, torch
        self._device, self._pin_memory = device, pin_memory
        self.sampler = EpochSampler(epochs)
        mover_to(torch, device, pin_memory).close()  # mistakes are told here, not at the first batch

    def __len__(self) -> int:
        return self._epochs.count()

    def __iter__(self) -> Iterator[Tensors]:
        with closed_after(mover_to(self._torch, self._device, self._pin_memory)) as mover:

            def start(item: tuple[Batch, Reached]) -> tuple[Copy, Reached]:
                return mover.start(item[0]), item[1]

            for copy, reached in started_ahead(self._epochs.begin(), start, mover.ahead):
                batch = mover.finish(copy)
                del copy
                self._epochs.delivered(reached)
                yield batch
                del batch  # else this frame keeps the slot while the user has dropped the batch

    def set_epoch(self, epoch: int) -> None:
        """The next epoch that begins has this number, unless a state inside of it was just loaded."""
        self._epochs.set_epoch(epoch)


class ResumableTorchLoader(TorchLoader):
    """A loader whose state can be saved between any two batches; Lightning does it when it writes a checkpoint."""

    def state_dict(self) -> dict[str, Any]:
        """What was delivered so far, as a few numbers."""
        return self._epochs.state()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next iteration goes on with exactly the next batch."""
        self._epochs.restore(state)
