"""Sources, functions and models whose costs are known, because they are sleeps and loops."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

import penstock as ps

READ_SECONDS = 0.01
LOOPS = 120_000


class Quick:
    """Small images that cost next to nothing."""

    schema = ps.Schema((ps.Field("image", "image"), ps.Field("label", "class")), ("a", "b"))

    def __init__(self, count: int = 64) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def read(self, index: int) -> ps.Raw:
        return ps.Raw(index, bytes(64))

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        return {"image": np.full((16, 16, 3), raw.index % 256, np.uint8), "label": raw.index % 2}


class Throttled(Quick):
    """One sample after another comes from its disk, however many ask."""

    def __init__(self, count: int = 64) -> None:
        super().__init__(count)
        self._disk = threading.Lock()

    def read(self, index: int) -> ps.Raw:
        with self._disk:
            time.sleep(READ_SECONDS)
        return super().read(index)


class Distant(Quick):
    """Each sample takes a while, and many can be under way."""

    def read(self, index: int) -> ps.Raw:
        time.sleep(READ_SECONDS)
        return super().read(index)


def slow_function(image: Any) -> Any:
    """Python that holds the GIL for some milliseconds."""
    total = 0
    for number in range(LOOPS):
        total += number
    return image


def slow_step(batch: dict[str, Any]) -> None:
    """A model that takes 50 ms for a batch, without a core."""
    time.sleep(0.05)


def quick_step(batch: dict[str, Any]) -> None:
    """A model that is always faster than the feed."""


def flow_of(source: Any, batch: int = 8, **options: Any) -> ps.Flow:
    return ps.Flow(source, **options).shuffle().batch(batch)


def cached_flow_of(source: Any, batch: int = 8) -> ps.Flow:
    return ps.Flow(source).shuffle().cache().batch(batch)
