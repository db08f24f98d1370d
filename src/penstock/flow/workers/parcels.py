"""Values on their way to another process: large arrays travel as shared memory, the rest as bytes."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from penstock.flow.workers.sharing import mapped, new_memory

LARGE_BYTES = 64 << 10  # below, a copy through the socket is cheaper than memory of its own
ALIGNMENT = 64

Dump = Callable[..., bytes]


class Parcel(NamedTuple):
    """A pickled value; the sizes of its large buffers, which stand one after another in shared memory."""

    body: bytes
    sizes: tuple[int, ...]


def wrapped(value: Any, dump: Dump = pickle.dumps, purpose: str = "an answer") -> tuple[Parcel, list[int]]:
    """A value as a parcel, and the descriptor of its shared memory where it needs some."""
    large: list[memoryview] = []

    def stays_inside(buffer: pickle.PickleBuffer) -> bool:
        view = buffer.raw()
        if view.nbytes < LARGE_BYTES:
            return True
        large.append(view)
        return False

    body = dump(value, protocol=5, buffer_callback=stays_inside)
    sizes = tuple(view.nbytes for view in large)
    if not large:
        return Parcel(body, ()), []
    descriptor = new_memory(sum(map(_aligned, sizes)), purpose)
    try:
        memory = np.frombuffer(mapped(descriptor, sum(map(_aligned, sizes))), np.uint8)
        start = 0
        for view in large:
            memory[start : start + view.nbytes] = np.frombuffer(view, np.uint8)
            start += _aligned(view.nbytes)
    except BaseException:
        os.close(descriptor)
        raise
    return Parcel(body, sizes), [descriptor]


def unwrapped(parcel: Parcel, descriptors: list[int], *, private: bool = False) -> Any:
    """The value of a parcel; its large arrays stay where they are. `private`: others have the same memory."""
    if not parcel.sizes:
        return pickle.loads(parcel.body)
    memory = np.frombuffer(mapped(descriptors[0], sum(map(_aligned, parcel.sizes)), private=private), np.uint8)
    views, start = [], 0
    for size in parcel.sizes:
        views.append(memory[start : start + size])
        start += _aligned(size)
    return pickle.loads(parcel.body, buffers=views)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
