"""A flow as torch and Lightning take it: an iterable of dicts of tensors, copied to the device ahead."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from penstock.errors import OptionError, require
from penstock.flow.adapters.epochs import Epochs, started_ahead
from penstock.flow.making.layout import Ragged
from penstock.flow.state import Reached

if TYPE_CHECKING:
    from penstock.flow.flow import Batch, Flow


# Arrays of a batch as tensors that share their memory.


def tensors_of(batch: dict[str, Any], torch: Any) -> dict[str, Any]:
    """Every array of a batch as a tensor; ragged fields as lists of tensors, texts as the lists they are.

    A tensor keeps the memory of its batch alive, as an array does.
    """
    return {name: _tensors(value, torch) for name, value in batch.items()}


def _tensors(value: Any, torch: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _tensor(value, torch) if value.dtype.kind in "biufc" else value.tolist()
    if isinstance(value, Ragged):
        return [_tensors(piece, torch) for piece in value]
    return value


def _tensor(array: np.ndarray[Any, Any], torch: Any) -> Any:
    shares = array.flags.writeable and array.dtype.isnative and all(stride >= 0 for stride in array.strides)
    return torch.from_numpy(array if shares else np.array(array, array.dtype.newbyteorder("="), order="C"))


# Batches on their way to a torch device.
#
# slot (pinned where it is) ──► side stream ──► device tensors ──► the consumer's stream waits for the copy alone
#      └─ kept until the copy is done: the slot must not be written again before


CUDA_AHEAD = 1  # one batch is copied while another is used
SUCCESS = 0  # of CUDA's calls


class Copy(NamedTuple):
    """A batch whose copy was started."""

    batch: dict[str, Any]
    host: Any  # what is copied from
    done: Any  # the event behind the copy


class Mover(Protocol):
    """Starts copies, and hands on what was copied."""

    ahead: int

    def start(self, batch: dict[str, Any]) -> Copy: ...
    def finish(self, copy: Copy) -> dict[str, Any]: ...
    def close(self) -> None: ...


def mover_to(torch: Any, device: Any, pin_memory: bool | str) -> Mover:
    """How batches get to a device; None leaves them where they are."""
    if pin_memory not in (True, False, "auto"):
        raise OptionError(f'pin_memory={pin_memory!r} must be True, False or "auto".')
    if pin_memory is True and not torch.cuda.is_available():
        raise OptionError('pin_memory=True needs a CUDA device, and torch sees none. Use "auto".')
    target = None if device is None else _device(torch, device)
    if target is None or target.type == "cpu":
        return Staying(torch, pins=pin_memory is True)
    if target.type == "cuda":
        return SideStream(torch, target, PinnedSlots(torch.cuda.cudart()) if pin_memory else None)
    return Moving(torch, target)


def _device(torch: Any, device: Any) -> Any:
    """A device of torch that is there."""
    try:
        target = torch.device(device)
    except RuntimeError as error:
        raise OptionError(f"to_torch({device!r}): torch has no such device. Use 'cuda', 'mps' or 'cpu'.") from error
    if target.type == "cuda" and not torch.cuda.is_available():
        raise OptionError(
            f"to_torch({device!r}): torch sees no CUDA device here. Use to_torch() for tensors on the CPU, check "
            "`nvidia-smi`, or install a torch that was built for CUDA."
        )
    return target


class Staying:
    """Nothing is moved. Pinned tensors are copies: only torch knows when what the user starts with them is over."""

    ahead = 0

    def __init__(self, torch: Any, *, pins: bool) -> None:
        self._torch, self._pins = torch, pins

    def start(self, batch: dict[str, Any]) -> Copy:
        tensors = tensors_of(batch, self._torch)
        return Copy(_each_tensor(tensors, lambda one: one.pin_memory()) if self._pins else tensors, None, None)

    def finish(self, copy: Copy) -> dict[str, Any]:
        return copy.batch

    def close(self) -> None:
        return


class Moving:
    """To devices without streams of their own kind."""

    ahead = 0

    def __init__(self, torch: Any, device: Any) -> None:
        self._torch, self._device = torch, device

    def start(self, batch: dict[str, Any]) -> Copy:
        tensors = tensors_of(batch, self._torch)
        return Copy(_each_tensor(tensors, lambda one: one.to(self._device)), None, None)

    def finish(self, copy: Copy) -> dict[str, Any]:
        return copy.batch

    def close(self) -> None:
        return


class SideStream:
    """Copies to a CUDA device on a stream of their own, while the consumer's stream computes."""

    ahead = CUDA_AHEAD

    def __init__(self, torch: Any, device: Any, pins: PinnedSlots | None) -> None:
        self._torch, self._device, self._pins = torch, device, pins
        self._stream = torch.cuda.Stream(device)
        self._copying: list[Copy] = []

    def start(self, batch: dict[str, Any]) -> Copy:
        host = tensors_of(batch, self._torch)
        if self._pins is not None:
            host = {name: self._pinned(batch[name], tensor) for name, tensor in host.items()}
        with self._torch.cuda.stream(self._stream):
            copied = _each_tensor(host, lambda one: one.to(self._device, non_blocking=True))
            done = self._torch.cuda.Event()
            done.record(self._stream)
        copy = Copy(copied, host, done)
        self._copying = [*(one for one in self._copying if not one.done.query()), copy._replace(batch={})]
        return copy

    def finish(self, copy: Copy) -> dict[str, Any]:
        stream = self._torch.cuda.current_stream(self._device)
        stream.wait_event(copy.done)
        # Memory that was made on the side stream: its next user there must wait for what this stream does with it.
        return _each_tensor(copy.batch, lambda one: _used_on(one, stream))

    def _pinned(self, value: Any, tensor: Any) -> Any:
        assert self._pins is not None
        if isinstance(value, np.ndarray) and self._pins.pin(value):
            return tensor
        return _each_tensor({"": tensor}, lambda one: one.pin_memory())[""]

    def close(self) -> None:
        self._stream.synchronize()
        self._copying.clear()
        if self._pins is not None:
            self._pins.close()


class PinnedSlots:
    """Batch memory that CUDA may read by itself: slots are pinned where they are, each once."""

    def __init__(self, cudart: Any) -> None:
        self._cudart = cudart
        # By address: the memory, which stays mapped as long as it is held here, and whether it is pinned.
        self._pinned: dict[int, tuple[Any, bool]] = {}

    def pin(self, array: np.ndarray[Any, Any]) -> bool:
        """Pin the slot that an array lies in; False where it lies in none, or CUDA refuses."""
        slot = slot_of(array)
        if slot is None:
            return False
        lease, memory = slot
        address = lease.ctypes.data
        if address not in self._pinned:
            is_pinned = int(self._cudart.cudaHostRegister(address, lease.nbytes, 0)) == SUCCESS
            self._pinned[address] = memory, is_pinned
        return self._pinned[address][1]

    def close(self) -> None:
        for address, (_, is_pinned) in self._pinned.items():
            if is_pinned:
                self._cudart.cudaHostUnregister(address)
        self._pinned.clear()


def slot_of(array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], Any] | None:
    """The lease that an array is a view of, and the memory below; None for arrays with memory of their own."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return None if array.base is None else (array, array.base)


def _each_tensor(batch: dict[str, Any], change: Any) -> dict[str, Any]:
    return {name: _changed(value, change) for name, value in batch.items()}


def _changed(value: Any, change: Any) -> Any:
    if hasattr(value, "pin_memory"):
        return change(value)
    return [_changed(one, change) for one in value] if isinstance(value, list) else value


def _used_on(tensor: Any, stream: Any) -> Any:
    tensor.record_stream(stream)
    return tensor


@contextlib.contextmanager
def closed_after(mover: Mover) -> Iterator[Mover]:
    """What is kept for copies goes when the epoch does."""
    try:
        yield mover
    finally:
        mover.close()


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
