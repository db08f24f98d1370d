"""Batches on their way to a torch device.

slot (pinned where it is) ──► side stream ──► device tensors ──► the consumer's stream waits for the copy alone
     └─ kept until the copy is done: the slot must not be written again before
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from penstock.errors import RecipeError
from penstock.flow.adapters.torch_tensors import tensors_of

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
        raise RecipeError(f'pin_memory={pin_memory!r} must be True, False or "auto".')
    if pin_memory is True and not torch.cuda.is_available():
        raise RecipeError('pin_memory=True needs a CUDA device, and torch sees none. Use "auto".')
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
        raise RecipeError(f"to_torch({device!r}): torch has no such device. Use 'cuda', 'mps' or 'cpu'.") from error
    if target.type == "cuda" and not torch.cuda.is_available():
        raise RecipeError(
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
