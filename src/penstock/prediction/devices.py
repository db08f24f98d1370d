"""Where networks answer: one device, or several with a copy of the network on each, which take turns."""

from __future__ import annotations

import copy
import queue
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

import torch

from penstock.errors import OptionError

Item = TypeVar("Item")
Answer = TypeVar("Answer")
# Pieces of work for each device that are given out ahead: one that is answered, one that waits.
AHEAD = 2
# What all cores of a CPU may look at together where each has a piece of its own: about 2 GB for a ResNet50.
MOST_PIXELS = 4_000_000


class Placed(NamedTuple):
    """A network and the device that it is on."""

    network: torch.nn.Module
    device: torch.device


def best_device() -> torch.device:
    """A GPU where there is one."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def devices_of(given: Any) -> tuple[torch.device, ...]:
    """A device, a list of them, or names with commas between; the best one where nothing is given."""
    names = given.split(",") if isinstance(given, str) else given
    names = list(names) if isinstance(names, (list, tuple)) else [names]
    if not names:
        raise OptionError("device=[] names no device. Name one, such as cpu or cuda:1, or leave it out.")
    try:
        return tuple(best_device() if name is None else torch.device(_plain(name)) for name in names)
    except (RuntimeError, TypeError) as error:
        raise OptionError(f"device={given!r} is no device: {str(error).splitlines()[0]}") from error


def _plain(name: Any) -> Any:
    return name.strip() if isinstance(name, str) else name


def placed(network: torch.nn.Module, devices: tuple[torch.device, ...]) -> tuple[Placed, ...]:
    """The network itself on the first device, and a copy of it on each other one."""
    others = [Placed(copy.deepcopy(network).to(device).eval(), device) for device in devices[1:]]
    return (Placed(network.to(devices[0]).eval(), devices[0]), *others)


def dealt(
    copies: tuple[Placed, ...],
    work: Callable[[Placed, Item], Answer],
    items: Iterable[Item],
    threads: int | None = None,
) -> Generator[Answer]:
    """What each piece of work gives, in order, done by whichever copy is free, with so many threads of a CPU each."""
    if len(copies) == 1:
        yield from (work(copies[0], item) for item in items)
        return
    free: queue.SimpleQueue[Placed] = queue.SimpleQueue()
    for one in copies:
        free.put(one)
    waiting: deque[Future[Answer]] = deque()
    with _threads_of_torch(threads) as begin, ThreadPoolExecutor(len(copies), "penstock-device", begin) as pool:
        for item in items:
            waiting.append(pool.submit(_by_a_free_one, free, work, item))
            if len(waiting) >= AHEAD * len(copies):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def lanes(one: Placed, pixels: int) -> tuple[tuple[Placed, ...], int | None]:
    """A CPU as several of fewer cores, and the threads of each: cores that never wait for each other do more.

    pixels    of one piece of work, as the network sees it; large ones are shared by all cores, to spare memory
    """
    cores = torch.get_num_threads()
    if one.device.type != "cpu" or cores == 1:
        return (one,), None
    threads = -(-cores // max(1, MOST_PIXELS // pixels))
    return (one,) * (cores // threads), threads


@contextmanager
def _threads_of_torch(count: int | None) -> Iterator[Callable[[], None]]:
    """What new threads begin with, so that they compute with so many. This one keeps what it has."""
    before = torch.get_num_threads()
    try:
        yield (lambda: None) if count is None else partial(torch.set_num_threads, count)
    finally:
        if count is not None:
            torch.set_num_threads(before)  # a thread that is begun later takes over what was set last, by any thread


def _by_a_free_one(free: queue.SimpleQueue[Placed], work: Callable[[Placed, Item], Answer], item: Item) -> Answer:
    one = free.get()
    try:
        return work(one, item)
    finally:
        free.put(one)
