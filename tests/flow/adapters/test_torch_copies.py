"""Copies ahead to a CUDA device: which slot is held how long, and who waits for what. No device is needed here: torch's
streams and tensors are stood in for by objects that write down what is asked of them."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
from tests.flow.small_flows import numbers, pictures

from penstock.flow.adapters.torch_loader import PinnedSlots, ResumableTorchLoader, SideStream


class Tensor:
    """Memory on the host or on the device, and the streams that use it."""

    def __init__(self, array: np.ndarray[Any, Any], device: str = "cpu") -> None:
        self.array, self.device, self.streams, self.is_pinned_copy = array, device, [], False

    def pin_memory(self) -> Tensor:
        pinned = Tensor(self.array.copy())
        pinned.is_pinned_copy = True
        return pinned

    def to(self, device: str, non_blocking: bool) -> Tensor:
        assert non_blocking
        return Tensor(self.array.copy(), device)

    def record_stream(self, stream: Stream) -> None:
        self.streams.append(stream)

    def tolist(self) -> Any:
        return self.array.tolist()


class Event:
    def __init__(self) -> None:
        self.is_over = False

    def record(self, stream: Stream) -> None:
        stream.events.append(self)

    def query(self) -> bool:
        return self.is_over


class Stream:
    def __init__(self, device: Any = None) -> None:
        self.events: list[Event] = []
        self.waited_for: list[Event] = []

    def wait_event(self, event: Event) -> None:
        self.waited_for.append(event)

    def synchronize(self) -> None:
        for event in self.events:
            event.is_over = True


class Torch:
    """What of torch the copies use; a copy is over when the test says so."""

    def __init__(self) -> None:
        self.cuda = self
        self.Stream, self.Event = self._stream, Event
        self.side: Stream | None = None
        self.main = Stream()
        self.registered: set[int] = set()

    def _stream(self, device: Any) -> Stream:
        self.side = Stream(device)
        return self.side

    def from_numpy(self, array: np.ndarray[Any, Any]) -> Tensor:
        return Tensor(array)

    @contextlib.contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        assert stream is self.side
        yield

    def current_stream(self, device: Any) -> Stream:
        return self.main

    def cudaHostRegister(self, address: int, size: int, flags: int) -> int:  # noqa: N802 - CUDA's name
        self.registered.add(address)
        return 0

    def cudaHostUnregister(self, address: int) -> int:  # noqa: N802 - CUDA's name
        assert self.side is not None and all(event.is_over for event in self.side.events), "a copy still reads it"
        self.registered.remove(address)
        return 0


def test_a_slot_is_held_until_its_copy_is_over() -> None:
    torch = Torch()
    mover = SideStream(torch, "cuda", PinnedSlots(torch))
    batches = pictures(24, workers=1).batch(4).prefetch(1).epoch(0)
    first = mover.start(next(batches))
    host = first.host["image"].array
    bytes_of_first = host.copy()
    delivered = mover.finish(first)
    del first, host
    gc.collect()
    held = mover._copying[0].host["image"].array
    for _ in batches:
        pass
    assert np.array_equal(held, bytes_of_first)  # nobody wrote into the slot, though nobody else holds it
    assert np.array_equal(delivered["image"].array, bytes_of_first)
    mover._copying[0].done.is_over = True
    mover.start(next(iter(pictures(4).batch(4).epoch(0))))
    assert len(mover._copying) == 1  # the first was let go
    mover.close()
    assert not torch.registered and not mover._copying


def test_the_stream_that_computes_waits_for_the_copy_alone_and_is_known_to_its_memory() -> None:
    torch = Torch()
    mover = SideStream(torch, "cuda", None)
    copies = [mover.start(batch) for batch in numbers(4).batch(2).epoch(0)]
    batch = mover.finish(copies[0])
    assert torch.side is not None and torch.main.waited_for == torch.side.events[:1]
    assert batch["index"].device == "cuda" and batch["index"].streams == [torch.main]


def test_slots_are_pinned_in_place_and_other_memory_by_a_copy() -> None:
    torch = Torch()
    mover = SideStream(torch, "cuda", PinnedSlots(torch))
    batch = next(iter(pictures(4).batch(4).epoch(0)))
    copy = mover.start({**batch, "loose": np.arange(4), "name": ["a", "b"]})
    assert not copy.host["image"].is_pinned_copy and copy.host["loose"].is_pinned_copy
    assert copy.batch["name"] == ["a", "b"] and copy.batch["loose"].tolist() == [0, 1, 2, 3]


def test_a_state_does_not_count_the_batch_that_is_copied_ahead(monkeypatch: Any) -> None:
    from penstock.flow.adapters import torch_loader
    from penstock.flow.adapters.epochs import Epochs

    monkeypatch.setattr(torch_loader, "mover_to", lambda torch, device, pins: SideStream(torch, device, None))
    flow = numbers(6).batch(2)
    loader = ResumableTorchLoader(Epochs(flow), Torch(), "cuda", "auto")
    seen = []
    for batch in loader:
        seen.append(batch["index"].tolist())
        place = loader.state_dict()
        assert (place["epoch"], place["batch"]) == divmod(len(seen), 3)
    assert seen == [[0, 1], [2, 3], [4, 5]]
