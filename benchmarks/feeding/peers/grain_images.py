"""Grain with its reading threads; decoded with simplejpeg."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grain

from benchmarks.feeding import decoding
from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve


def build(settings: Settings) -> Epoch:
    normalise = settings["layout"] == "float32"

    def loaded(file: tuple[str, int]) -> tuple[Any, int]:
        path, label = file
        pixels = decoding.augmented(Path(path).read_bytes())
        return (decoding.normalised(pixels) if normalise else pixels), label

    files = grain.MapDataset.source(decoding.listed(settings["folder"]))
    reading = grain.ReadOptions(num_threads=settings["workers"], prefetch_buffer_size=4 * settings["batch"])

    def epoch_of(epoch: int) -> Batches:
        shuffled = files.shuffle(seed=epoch).map(loaded)
        return iter(shuffled.to_iter_dataset(reading).batch(settings["batch"]))

    return epoch_of


if __name__ == "__main__":
    serve(["grain", "simplejpeg", "opencv-python-headless"], build)
