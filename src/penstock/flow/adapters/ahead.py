"""Work on what comes next that runs by itself once it is started, such as copies to a device."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
Started = TypeVar("Started")


def started_ahead(items: Iterator[Item], start: Callable[[Item], Started], count: int) -> Iterator[Started]:
    """What `start` gave for each item, in order; it was called `count` items before the item is handed on."""
    waiting: deque[Started] = deque()
    for item in items:
        waiting.append(start(item))
        del item  # what is handed on must not be kept here
        if len(waiting) > count:
            yield waiting.popleft()
    while waiting:
        yield waiting.popleft()
