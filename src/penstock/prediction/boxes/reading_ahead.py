"""Windows that are read ahead by threads, each with its own handle, while the network answers others."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from penstock.prediction.boxes.scenes import Scene, Shown
from penstock.prediction.boxes.window_plans import WindowPlan

# Enough that a row of windows that has to be decoded at once does not stop the network: 32 windows of 400 px.
AHEAD_BYTES = 16 << 20
# What is handed over at a time: between threads that costs as much as copying a window of 400 px.
TOGETHER_BYTES = 4 << 20
# How often a wait looks whether the other side is still there.
LOOK_SECONDS = 0.1


class _Done:
    """What a thread puts last."""


Item = list[Shown] | _Done | BaseException


def windows_ahead(scene: Scene, plan: WindowPlan, numbers: NDArray[np.int64], workers: int) -> Generator[Shown]:
    """The windows with these numbers (ascending) that are worth a look, in whatever order they are read."""
    readers, threads_each = (1, workers) if scene.reads_in_parallel else (workers, 1)
    shares = [share for share in _by_rows(numbers, len(plan.grid.columns), readers) if len(share)]
    together = max(1, TOGETHER_BYTES // plan.shown_bytes)
    items: queue.Queue[Item] = queue.Queue(max(2, AHEAD_BYTES // (together * plan.shown_bytes)))
    left = threading.Event()
    groups = [_in_groups(scene.read(plan, share, threads_each), together) for share in shares]
    threads = [
        threading.Thread(target=_read, args=(some, items, left), daemon=True, name="penstock-reader") for some in groups
    ]
    for thread in threads:
        thread.start()
    try:
        yield from _taken(items, threads)
    finally:
        left.set()
        for thread in threads:
            if thread is not threading.current_thread():  # garbage is collected in any thread
                thread.join()


def _by_rows(numbers: NDArray[np.int64], columns: int, workers: int) -> list[NDArray[np.int64]]:
    """Whole rows of windows for each thread: a band of rows is decoded by one of them alone."""
    rows = np.unique(numbers // columns)
    return [numbers[np.isin(numbers // columns, some)] for some in np.array_split(rows, max(1, workers))]


def _in_groups(shown: Iterator[Shown], size: int) -> Iterator[list[Shown]]:
    while group := list(islice(shown, size)):
        yield group


def _read(groups: Iterator[list[Shown]], items: queue.Queue[Item], left: threading.Event) -> None:
    last: Item = _Done()
    try:
        for group in groups:
            if not _put(items, group, left):
                return
    except BaseException as error:  # noqa: BLE001 - it is raised again where the windows are taken
        last = error
    _put(items, last, left)


def _put(items: queue.Queue[Item], item: Item, left: threading.Event) -> bool:
    """Wait for room, as long as somebody takes; False when nobody does any more."""
    while not left.is_set():
        try:
            items.put(item, timeout=LOOK_SECONDS)
        except queue.Full:
            continue
        return True
    return False


def _taken(items: queue.Queue[Item], threads: list[threading.Thread]) -> Iterator[Shown]:
    running = len(threads)
    while running:
        try:
            item = items.get(timeout=LOOK_SECONDS)
        except queue.Empty:
            if not any(thread.is_alive() for thread in threads) and items.empty():
                return
            continue
        if isinstance(item, BaseException):
            raise item
        if isinstance(item, _Done):
            running -= 1
        else:
            yield from item
