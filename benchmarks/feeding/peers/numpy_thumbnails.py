"""Vectorised numpy in threads: no pipeline, and no peer either, but what a careful user writes by hand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from benchmarks.feeding import thumbnailing
from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve


def build(settings: Settings) -> Epoch:
    pixels, batch, workers = np.load(settings["array"]), settings["batch"], settings["workers"]

    def make(part: tuple[Any, int]) -> tuple[Any, Any]:
        indices, seed = part
        return thumbnailing.batch_of(pixels, indices, np.random.default_rng(seed)), indices % thumbnailing.CLASSES

    def epoch_of(epoch: int) -> Batches:
        order = np.random.default_rng(epoch).permutation(len(pixels))
        parts = [(order[start : start + batch], start) for start in range(0, len(order), batch)]
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(make, parts)

    return epoch_of


if __name__ == "__main__":
    serve(["numpy"], build)
